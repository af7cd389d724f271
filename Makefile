# One command for each thing, the same here and in CI. `make help` lists them.
SHELL := /bin/bash
BIN := .venv/bin
TYPED := src tests $(wildcard bench/*.py scripts/*.py)

ROUNDS ?= 50
SEED ?= 1
REPORT ?= chaos-report.json

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format types contracts unit bench-overhead bench-large bench-kafka bench-postgres chaos day docs clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install everything into .venv (and Java, where that is allowed); quick when nothing changed
	@scripts/setup.sh

demo: setup ## run a generated online shop through a real job and show the results
	@$(BIN)/tidemark demo

# Three at a time, each with a Spark session, a broker and a database of its own; what is timed then runs in two.
test: setup ## everything CI checks: lint, types, import contracts and all tests
	$(MAKE) --no-print-directory --jobs 2 lint types contracts
	$(BIN)/pytest -m "not timed" --numprocesses 3 --dist loadfile --no-loadscope-reorder
	$(BIN)/pytest tests/faults -m timed --numprocesses 2 --dist loadfile --no-loadscope-reorder

lint: setup ## style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: setup ## put style and formatting right where a tool can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: setup ## strict types, tests included
	$(BIN)/mypy $(TYPED)

contracts: setup ## which package may import which
	$(BIN)/lint-imports --no-logo

unit: setup ## the fast tests: no Spark, no processes killed
	$(BIN)/pytest -m "not spark and not semantics and not faults and not slow"

bench-overhead: setup ## throughput of a job against the same query written by hand
	$(BIN)/python -m bench.overhead

bench-large: setup ## one epoch of five million result rows through a driver of 1 GB
	$(BIN)/python -m bench.large_epoch

bench-kafka: setup ## Kafka to Kafka, exactly once, against Spark's at-least-once sink
	$(BIN)/python -m bench.kafka_window

bench-postgres: setup ## upserts into PostgreSQL against bare COPY and INSERT … ON CONFLICT
	$(BIN)/python -m bench.postgres_upsert

chaos: setup ## one job through ROUNDS faults in the order of SEED; the report is in REPORT
	PYTHONPATH=$(CURDIR)/tests $(BIN)/python -m faults.chaos --rounds $(ROUNDS) --seed $(SEED) --report $(REPORT)

day: setup ## a scripted day of jobs on a real server, kills, many requests, and a cluster that loses an executor
	$(BIN)/python -m bench.day

docs: setup ## regenerate the reference from the code
	$(BIN)/python scripts/generate_docs.py

clean: ## remove what commands leave behind, the environment and local job state included
	rm -rf .venv .tidemark .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	rm -rf spark-warehouse metastore_db src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
