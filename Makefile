# Everything runs in a virtual environment, made on first use.
#   make test VENV=/some/where      another place for it
#   make test WORKERS=0 ARGS="-k weights -x"

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
ARGS ?=
RESULTS ?= owasvm-results

BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_DOCS := $(VENV)/.installed-docs
INSTALLED_EXPERIMENTS := $(VENV)/.installed-experiments

# One thread per test worker: numerical libraries would otherwise start one per core each.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export NUMBA_NUM_THREADS ?= 1
export MPLBACKEND ?= Agg

.DEFAULT_GOAL := help
.PHONY: help venv test lint format types check bench docs dist reproduce clean

help: ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1|/' \
		| while IFS='|' read -r target text; do printf '  %-10s %s\n' "$$target" "$$text"; done

venv: $(INSTALLED) ## create the virtual environment and install the package for tests

# Editable, so only a change of pyproject.toml asks for another installation.
$(INSTALLED): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

$(INSTALLED_DOCS): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --editable '.[docs,plot]'
	touch $@

# Without what the tests need: enough for a bare machine.
$(INSTALLED_EXPERIMENTS): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[experiments]'
	touch $@

test: $(INSTALLED) ## run the tests and doctests (WORKERS=2, ARGS= for pytest)
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

lint: $(INSTALLED) ## check style, formatting, who imports whom, private names
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/check_private_names.py owasvm

format: $(INSTALLED) ## repair style and formatting where that is automatic
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

types: $(INSTALLED) ## check types
	$(BIN)/python -m mypy

check: test lint types ## test, lint and types

bench: $(INSTALLED) ## run every benchmark script, one after another
	set -e; for script in benchmarks/[a-z]*.py; do $(BIN)/python "$$script"; done

# What was read and computed is kept, pages are written anew: none is left over from another build.
docs: $(INSTALLED_DOCS) ## build the documentation, warnings are errors, and check the built pages
	rm -rf docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -b html -d docs/_build/doctrees docs docs/_build/html
	OWASVM_SITE=docs/_build/html $(BIN)/python -m pytest -q tests/test_site.py tests/test_docstrings.py
	@echo "The pages: docs/_build/html/index.html"

dist: $(INSTALLED) ## build wheel and sdist into dist/ and try them in clean environments
	$(BIN)/python tools/check_dist.py

reproduce: $(INSTALLED_EXPERIMENTS) ## repeat the paper's experiments on one dataset, coarse grid, with report
	$(BIN)/owasvm reproduce --grid coarse --dataset wbc --output $(RESULTS)
	@echo "The report:  $(RESULTS)/report/index.html"
	@echo "Everything:  $(BIN)/owasvm reproduce --grid paper --dataset all --output $(RESULTS)-paper"

clean: ## remove caches and build products, not the virtual environment
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage htmlcov
	rm -rf docs/_build docs/generated docs/auto_examples
	find owasvm tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
