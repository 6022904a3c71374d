# Needs Python 3.11 or later with pip, make and git; no compiler, no Docker, no root.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
UV := .cache/uv
# Two sessions of tests side by side, each with servers of its own; a file stays in one of them.
TWICE := --numprocesses 2 --dist loadfile --no-loadscope-reorder
DEBIAN_15 := /usr/lib/postgresql/15/bin/postgres

.DEFAULT_GOAL := help
.NOTPARALLEL:

.PHONY: help
help: ## say what there is
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 12

.PHONY: run
run: $(VENV)/.installed ## the main job on servers of its own: renew, collect, publish, reconcile
	$(BIN)/billing demo

.PHONY: up
up: $(VENV)/.installed ## everything on servers of its own, until it is interrupted
	$(BIN)/billing up

.PHONY: venv
venv: $(VENV)/.installed-dev ## the virtual environment with all tools

.PHONY: test
test: lint test-newest test-oldest ## everything: linters, SQL and Python tests, newest and oldest PostgreSQL

.PHONY: lint
lint: lint-python lint-sql ## linters, formatter and type checker

.PHONY: lint-python
lint-python: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

.PHONY: lint-sql
lint-sql: $(VENV)/.installed-dev
	$(BIN)/sqlfluff lint --disable-progress-bar --processes 0 db tests/sql
	$(BIN)/squawk db/migrations/*.sql

.PHONY: test-newest
test-newest: $(VENV)/.installed-dev ## all tests on PostgreSQL 18, from its wheel
	BILLING_TEST_POSTGRES=embedded $(BIN)/pytest $(TWICE) -m 'not long' tests/sql tests/py

.PHONY: test-oldest
ifneq ($(wildcard $(DEBIAN_15)),)
test-oldest: $(VENV)/.installed-dev ## what hangs on PostgreSQL, on Debian's 15 where that is installed
	BILLING_TEST_POSTGRES=debian15 $(BIN)/pytest $(TWICE) -m 'not long' --only-postgres tests/sql tests/py
else
test-oldest:
	@echo "PostgreSQL 15 left out: Debian's postgresql-15 is not installed"
endif

.PHONY: test-long
test-long: $(VENV)/.installed-dev ## chaos and deliberate bugs, minutes each; not part of test
	BILLING_TEST_POSTGRES=embedded $(BIN)/pytest -m long tests/sql tests/py

.PHONY: lock
lock: $(UV)/bin/uv ## pin all dependencies anew, with hashes and without addresses
	$(UV)/bin/uv pip compile pyproject.toml --group build $(COMPILE) -o requirements.lock
	$(UV)/bin/uv pip compile pyproject.toml --group dev $(COMPILE) -o requirements-dev.lock

COMPILE := --generate-hashes --no-annotate --no-emit-index-url --no-header --universal --python-version 3.11 --quiet

.PHONY: clean
clean: ## remove what the other targets made; data directories stay
	rm -rf $(VENV) .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "$(PYTHON) is older than 3.11; name another: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Both locks pin the same versions, and the dev lock holds all of the other.
$(VENV)/.installed: requirements.lock pyproject.toml | $(BIN)/python
	$(PIP) install --no-deps --require-hashes -r requirements.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.installed-dev: requirements-dev.lock pyproject.toml | $(BIN)/python
	$(PIP) install --no-deps --require-hashes -r requirements-dev.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/.installed

$(UV)/bin/uv:
	$(PYTHON) -m venv $(UV)
	$(UV)/bin/python -m pip --disable-pip-version-check --quiet install uv
