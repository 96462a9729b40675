# Everything a fresh clone needs is Python 3.10 or newer, make and a C++ compiler: cmake and ninja come from pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Runs pytest on two cores; `make test ARGS="-k vw"` passes more on.
WORKERS ?= 2
ARGS ?=
# Inputs to each parser: a few seconds for every 100,000.
FUZZ_INPUTS ?= 200000

NATIVE := CMakeLists.txt pyproject.toml $(wildcard native/*.h native/*.cpp)
PIP := $(BIN)/python -m pip --disable-pip-version-check
PEER = $(PIP) install -q --only-binary :all: "vowpalwabbit>=9.9" \
	  || echo "vowpalwabbit has no wheel for this Python: the tests against it will be skipped"

.PHONY: help demo test lint format types imports doctest check native-asan fuzz bench golden clean

help:
	@echo "make demo         build an environment in .venv, install pomona there, run 'pomona demo'"
	@echo "make test         the whole test-suite (ARGS='-k vw' to choose)"
	@echo "make check        lint, types, imports and the examples in docstrings and README"
	@echo "make format       lay the code out as lint wants it"
	@echo "make native-asan  the native tests under AddressSanitizer and UBSan"
	@echo "make fuzz         arbitrary bytes into every parser, FUZZ_INPUTS=$(FUZZ_INPUTS) of them"
	@echo "make bench        speed against other tools"
	@echo "make golden       write the stored models and transcripts anew"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("pomona needs Python 3.10 or newer" if sys.version_info < (3, 10) else 0)'
	$(PYTHON) -m venv $(VENV)

# Editable, so that Python edits need no installation; C++ edits change NATIVE and rebuild.
$(VENV)/.installed: $(BIN)/python $(NATIVE)
	$(PIP) install -q -e .
	@touch $@

$(VENV)/.test: $(BIN)/python $(NATIVE)
	$(PIP) install -q -e ".[test]"
	$(PEER)
	@touch $(VENV)/.installed $@

$(VENV)/.lint: $(BIN)/python $(NATIVE)
	$(PIP) install -q -e ".[test,lint]" cmake ninja
	$(PEER)
	@touch $(VENV)/.installed $(VENV)/.test $@

demo: $(VENV)/.installed
	@$(BIN)/pomona demo

test: $(VENV)/.test
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.lint
	$(BIN)/ruff check --fix -q .
	$(BIN)/ruff format -q .

types: $(VENV)/.lint
	$(BIN)/python -m mypy

imports: $(VENV)/.lint
	$(BIN)/lint-imports

# README runs from outside the tree, as its readers do.
doctest: $(VENV)/.test
	$(BIN)/python -m pytest --doctest-modules src/pomona -p no:cacheprovider
	cd $(VENV) && bin/python -m doctest -o ELLIPSIS -o NORMALIZE_WHITESPACE ../README.md ../docs/guide.md

check: lint types imports doctest

# $(call cmake,NAME,OPTIONS) builds the native code in build/NAME.
cmake = $(BIN)/cmake -S . -B build/$(1) -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) \
	  -DCMAKE_BUILD_TYPE=Debug --log-level=WARNING $(2) && $(BIN)/cmake --build build/$(1) -- --quiet

# The sanitized library takes the place of the installed one through POMONA_CORE. libstdc++ must be there before
# the first exception is thrown, or the sanitizer cannot intercept it.
ASAN := build/asan/_pomona.so
NATIVE_TESTS := tests/online tests/source tests/encode tests/property \
  $(addprefix tests/higherorder/test_,cuts.py tuples.py learning.py)
$(ASAN): $(NATIVE) | $(VENV)/.lint
	$(call cmake,asan,-DPOMONA_SANITIZE=ON)
	@touch $@

native-asan: $(ASAN)
	POMONA_CORE=$(abspath $(ASAN)) ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	  LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	  $(BIN)/python -m pytest -n $(WORKERS) -m "not slow and not peer" $(NATIVE_TESTS) $(ARGS)

# A build of its own: the targets hold the parsers and the sanitizers.
fuzz: $(VENV)/.lint
	$(call cmake,fuzz,-DPOMONA_FUZZ=ON)
	@set -e; for target in build/fuzz/fuzz_*; do \
	  echo "$$target $(FUZZ_INPUTS)"; $$target $(FUZZ_INPUTS) $$(date +%s); \
	done

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks speed $(ARGS)

golden: $(VENV)/.test
	$(BIN)/python tests/model/test_file.py
	$(BIN)/python tests/model/test_golden_models.py
	$(BIN)/python tests/leastsquares/test_golden.py
	$(BIN)/python tests/cli/test_transcripts.py

clean:
	rm -rf $(VENV) build
