# On a fresh machine with Python >= 3.11, pip and make, each target installs what it needs.
PYTHON ?= python3
BIN := .venv/bin
# One thread each: two BLAS threads on a busy machine are many times slower than one.
export OPENBLAS_NUM_THREADS = 1
export OMP_NUM_THREADS = 1
# Compiled modules are kept: otherwise every process that a test starts compiles them again.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo live german test test-product test-lab test-long floors browser tutorial site bench size release lint clean

demo: .venv/production  ## a past that overlooked a group, and a certified program that finds it
	@$(BIN)/fairchance demo

live: .venv/service  ## a lender's 17 months in two minutes, on a dashboard
	@$(BIN)/fairchance demo --live

german: .venv/dev  ## everything on German credit: all methods, each option alone, the released code
	$(BIN)/fairchance reproduce german --methods all --quick --repetitions 4 --out results/german/all
	$(BIN)/fairchance reproduce german --methods plain --repetitions 10 --vary weight_cap=1,3,10,none --out results/german/weight-cap
	$(BIN)/fairchance reproduce german --methods plain --repetitions 10 --vary first_round=matched,drawn,cut,learned --out results/german/round-1
	$(BIN)/fairchance reproduce german --methods plain,both-fair --repetitions 10 --vary alpha=0.05,0.1,0.15,0.2,0.25,0.3 --out results/german/alpha
	$(BIN)/fairchance reproduce german --methods plain,exploit-fair,explore-fair,both-fair --repetitions 5 --as-released --without A9 --out results/german/as-released
	$(BIN)/fairchance simulate examples/worlds/paper-text.toml --out results/german/paper-text

# Each of the two jobs is a folder of packages/ with the pages that are about it.
PYTEST = -m pytest -n 2 --dist loadgroup -q
OF_LAB = packages/fairchance-lab docs/extensions.md $(addprefix tests/test_,deploy.py documentation.py examples.py repository.py site.py tutorial.py)
OF_PRODUCT = packages/fairchance README.md docs/audit.md docs/start docs/guide $(addprefix tests/test_,production_guide.py operate_guide.py service_guide.py)

test: test-product test-lab  ## everything that is checked, in a quarter of an hour

test-product: lint  ## the product alone
	$(BIN)/python tests/cpu_minutes.py product $(BIN)/python $(PYTEST) $(OF_PRODUCT)

test-lab: lint  ## the lab alone
	$(BIN)/python tests/cpu_minutes.py lab $(BIN)/python $(PYTEST) $(OF_LAB)

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tests/cpu_minutes.py types $(BIN)/mypy
	$(BIN)/lint-imports

test-long: .venv/dev .venv/spark  ## what takes longer; run it before you call something done
	$(BIN)/python -m pytest -n 2 -q -m long

floors: .venv-floors/dev  ## the product's tests with the lowest versions that pyproject.toml allows
	.venv-floors/bin/python -m pytest -n 2 --dist loadgroup -q packages/fairchance

browser:  ## Chromium, in which tests look at the pages
	@command -v chromium || command -v apt-get || { echo "Install Chromium, and set FAIRCHANCE_CHROMIUM to its path."; exit 1; }
	@command -v chromium >/dev/null || { [ $$(id -u) = 0 ] || sudo=sudo; $$sudo apt-get update && $$sudo apt-get install -y chromium; }

tutorial: .venv/dev  ## docs/tutorial.ipynb, run again, with its pictures
	$(BIN)/python docs/run_tutorial.py

site: .venv/dev  ## the documentation with its gallery, in build/site/index.html
	$(BIN)/sphinx-build -q -W --keep-going docs build/site

bench: .venv/dev  ## speed as ratios, measured in one run
	$(BIN)/python -m benchmarks

size: .venv/dev  ## lines, sentences and public names of each package, against origin's main
	$(BIN)/python benchmarks/size.py origin/main

release: .venv/dev  ## wheels and source distributions in dist/, tried without the checkout
	$(BIN)/python release/check.py

clean:
	rm -rf .venv .venv-floors demo results build/site docs/gallery docs/reference/api docs/sg_execution_times.rst

.venv/bin/python:
	@$(PYTHON) -m venv .venv

.venv/production: packages/fairchance/pyproject.toml | .venv/bin/python
	@echo "Installing into .venv; the first time takes a minute."
	@$(BIN)/python -m pip install --quiet --editable 'packages/fairchance[production]'
	@touch $@

.venv/service: packages/fairchance/pyproject.toml | .venv/bin/python
	@echo "Installing into .venv; the first time takes a minute."
	@$(BIN)/python -m pip install --quiet --editable 'packages/fairchance[service]'
	@touch $@ .venv/production

.venv/dev: packages/fairchance/pyproject.toml packages/fairchance-lab/pyproject.toml | .venv/bin/python
	@echo "Installing into .venv; the first time takes a minute."
	@$(BIN)/python -m pip install --quiet --editable packages/fairchance --editable 'packages/fairchance-lab[dev]'
	@touch $@ .venv/production .venv/service

.venv/spark: packages/fairchance/pyproject.toml | .venv/bin/python
	@echo "Installing Spark into .venv, a download of 450 MB."
	@$(BIN)/python -m pip install --quiet --editable 'packages/fairchance[spark]'
	@touch $@

.venv-floors/dev: floors.txt packages/fairchance/pyproject.toml packages/fairchance-lab/pyproject.toml
	@$(PYTHON) -m venv .venv-floors
	@.venv-floors/bin/python -m pip install --quiet --constraint floors.txt --editable packages/fairchance --editable 'packages/fairchance-lab[dev]'
	@touch $@
