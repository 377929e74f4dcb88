# Two commands on a fresh machine: `make run` and `make test`. Everything lives in .venv.

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run test check soak fuzz soak-short bench lint types proof format build clean

# A version manager's python3.12 may exist and refuse to start, and a Python may come without venv,
# so each candidate has to run.
CAN_MAKE_VENV := import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))
# Looked for once, and only by a recipe that needs it.
PYTHON ?= $(eval PYTHON := $(shell for candidate in python3.13 python3.12 python3.11 python3; do \
	$$candidate -c '$(CAN_MAKE_VENV)' >/dev/null 2>&1 && { echo $$candidate; break; }; done))$(PYTHON)
PORT ?= 8338
BIN := .venv/bin
INSTALLED := .venv/.installed

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The example's turns are invented: they must not mix with real ones in the default ledger.
run: export COMPACTUARY_DB ?= $(CURDIR)/.venv/example.db
run: $(INSTALLED) ## migrate a ledger in .venv, fill it with the example if it is empty, serve on PORT
	$(BIN)/compactuary db upgrade
	$(BIN)/python -m examples .venv/example
	$(BIN)/compactuary import --if-empty .venv/example
	$(BIN)/compactuary serve --port $(PORT)

test: $(INSTALLED) ## run the tests, all but the packaging proof
	$(BIN)/python -m pytest tests/unit tests/integration -n auto --maxprocesses 4 --dist loadfile
	$(BIN)/python -m pytest --ignore=tests/packaging --ignore=tests/unit --ignore=tests/integration \
		--ignore=tests/faults -n auto --maxprocesses 2 --dist loadfile
	$(BIN)/python -m pytest tests/faults

check: lint types proof test ## everything that has to hold before a change lands

# Examples for each operation of the API: more than 10,000 requests in all.
soak fuzz: export HYPOTHESIS_PROFILE ?= search
soak: export SOAK_EXAMPLES ?= 500
soak: $(INSTALLED) ## the long form of what the tests do briefly: made-up requests, kills, half an hour of load
	$(BIN)/python -m pytest -rP tests/e2e/test_contract.py
	FUZZ_INPUTS=$${FUZZ_INPUTS:-1000000} $(BIN)/python -m pytest tests/fuzz
	LAW_EXAMPLES=$${LAW_EXAMPLES:-2200} $(BIN)/python -m pytest \
		tests/unit/strategies/test_laws.py tests/integration/strategies
	FAULT_ROUNDS=$${FAULT_ROUNDS:-50} $(BIN)/python -m pytest tests/faults
	$(BIN)/python -m benchmarks.soak --minutes 30

fuzz: export FUZZ_INPUTS ?= 1000000
fuzz: $(INSTALLED) ## a million damaged Claude Code logs through the reader, some through an import
	$(BIN)/python -m pytest tests/fuzz

soak-short: $(INSTALLED) ## a minute of mixed load
	$(BIN)/python -m benchmarks.soak --minutes 1

bench: $(INSTALLED) ## time the hot paths, as ratios
	$(BIN)/python -m benchmarks

lint: $(INSTALLED) ## style, formatting and the directions of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(INSTALLED) ## the strict type check
	$(BIN)/mypy
	$(BIN)/mypy hatch_build.py

proof: $(INSTALLED) ## build the wheel and prove that it works away from this folder
	$(BIN)/python -m pytest tests/packaging

format: $(INSTALLED) ## rewrite the files in the house style
	$(BIN)/ruff check --fix-only --exit-zero .
	$(BIN)/ruff format .

build: $(INSTALLED) ## make the wheel and the source archive in dist
	$(BIN)/python -m build --no-isolation

clean: ## remove the environment and all that was made
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml constraints.txt
	@'$(PYTHON)' -c '$(CAN_MAKE_VENV)' 2>/dev/null || { \
		echo "PYTHON='$(PYTHON)': no Python 3.11 or newer with venv runs under this name." \
			"Install one (on Debian: python3 and python3-venv) or say where it is:" \
			"make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(BIN)/python -c '$(CAN_MAKE_VENV)' 2>/dev/null || $(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[test]"
	@touch $@
