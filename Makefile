# On a fresh machine with Python >= 3.11, pip and make, each target installs what it needs.
PYTHON ?= python3
BIN := .venv/bin
# One thread each: two BLAS threads on a busy machine are many times slower than one.
export OPENBLAS_NUM_THREADS = 1
export OMP_NUM_THREADS = 1

.PHONY: demo test test-long bench lint clean

demo: .venv/experiments  ## the paper's German credit experiment, a few repetitions, with a report
	$(BIN)/secondlook reproduce german --repetitions 5 --out demo/german --ledger sqlite:///demo/german/ledger.db

test: lint  ## everything that is checked, in a few minutes
	$(BIN)/python -m pytest -n 2 --dist loadgroup -q

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test-long: .venv/dev  ## what takes longer; run it before you call something done
	$(BIN)/python -m pytest -n 2 -q -m long

bench: .venv/dev  ## speed as ratios, measured in one run
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv demo results

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/experiments: pyproject.toml | .venv/bin/python
	@echo "Installing into .venv; the first time takes a minute."
	$(BIN)/python -m pip install --quiet --editable '.[experiments,ledger]'
	@touch $@

.venv/dev: pyproject.toml | .venv/bin/python
	@echo "Installing into .venv; the first time takes a minute."
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ .venv/experiments
