# One venv in .venv. Its stamps depend on the lock files, so an up-to-date setup costs nothing.
SHELL := /bin/sh
BIN := .venv/bin
ARGS ?=
JOBS ?= 2
COMPILE := pip compile pyproject.toml --universal --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --quiet

.DEFAULT_GOAL := help
.PHONY: help setup run test check bench lock audit sbom clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: .venv/dev.stamp ## create .venv with the locked dependencies and the checkout itself

run: .venv/run.stamp ## start a server (ARGS="..." goes to foliot serve)
	@exec $(BIN)/foliot serve $(ARGS)

test: .venv/dev.stamp ## run the tests (ARGS="-k name" goes to pytest)
	$(BIN)/pytest -n $(JOBS) --dist worksteal $(ARGS)

check: .venv/dev.stamp ## format, lint, types, layers, dependencies, spelling, coverage of the core
	@echo "== ruff format" && $(BIN)/ruff format --check .
	@echo "== ruff check" && $(BIN)/ruff check .
	@echo "== mypy" && $(BIN)/mypy src tests $(wildcard bench)
	@echo "== import-linter" && $(BIN)/lint-imports
	@echo "== deptry" && $(BIN)/deptry src
	@echo "== typos" && $(BIN)/typos
	@echo "== coverage of foliot.domain and foliot.service" && $(BIN)/pytest -q -n $(JOBS) tests/domain tests/service \
		--deselect tests/domain/timetable/test_clock_changes.py::test_what_is_due_around_a_change_of_the_clock \
		--cov=foliot.domain --cov=foliot.service --cov-branch --cov-fail-under=100

bench: .venv/dev.stamp ## run the benchmarks (ARGS="..." goes to bench)
	$(BIN)/python -m bench $(ARGS)

lock: ## renew the lock files from pyproject.toml (ARGS=--upgrade for newer versions)
	@set -e; tool=$$(command -v uv || true); \
	if [ -z "$$tool" ]; then \
		scratch=$$(mktemp -d); trap 'rm -rf "$$scratch"' EXIT; \
		python3 -m venv "$$scratch" && "$$scratch/bin/pip" install --quiet uv; tool=$$scratch/bin/uv; \
	fi; \
	"$$tool" $(COMPILE) --group dev $(ARGS) --output-file requirements-dev.txt; \
	"$$tool" $(COMPILE) --group build --constraint requirements-dev.txt --no-annotate --output-file requirements.txt

audit: .venv/dev.stamp ## ask the advisory services about the locked dependencies
	$(BIN)/pip-audit --strict --disable-pip --require-hashes -r requirements.txt -r requirements-dev.txt $(ARGS)
	@for file in $$(git ls-files '*package.json'); do (cd "$$(dirname "$$file")" && npm audit); done

sbom: .venv/dev.stamp ## write what a release is made of to dist/foliot.cdx.json (CycloneDX)
	@mkdir -p dist
	$(BIN)/cyclonedx-py requirements requirements.txt --pyproject pyproject.toml --mc-type application \
		--output-reproducible --output-format JSON --output-file dist/foliot.cdx.json

clean: ## remove .venv and every cache
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage dist
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/dev.stamp: pyproject.toml requirements-dev.txt tools/setup
	@tools/setup requirements-dev.txt
	@touch .venv/run.stamp $@

.venv/run.stamp: pyproject.toml requirements.txt tools/setup
	@tools/setup requirements.txt
	@touch $@
