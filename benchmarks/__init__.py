"""Benchmarks of pomona against its peers: ``python -m benchmarks --help``."""
