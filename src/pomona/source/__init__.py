"""Where examples come from: files, arrays and tables, all read a chunk at a time."""

from pomona.source.open import open_source

__all__ = ["open_source"]
