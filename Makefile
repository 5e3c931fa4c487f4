# `make gate` and `make test` are the whole set-up: each makes the environment it needs.
SHELL := /bin/bash
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: gate test lint workflows install clean python

gate: $(BIN)/.installed
	$(BIN)/flopwatch gate

test: $(BIN)/.installed-dev
	$(BIN)/python -m pytest -n 2

lint: workflows
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

workflows: $(BIN)/.installed-dev
	$(BIN)/zizmor --quiet --offline --strict-collection --persona=pedantic .github
	$(BIN)/actionlint -no-color
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml

install: $(BIN)/.installed

python:
	@if [ -z "$(PYTHON)" ]; then \
		echo "flopwatch needs Python 3.11 or newer: apt-get install python3 python3-venv" >&2; exit 2; fi
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
		echo "$(PYTHON) lacks venv: apt-get install python3-venv" >&2; exit 2; }

$(BIN)/python: | python
	$(PYTHON) -m venv $(VENV)

# CUDA 13 needs driver 580; an older driver counts as no GPU.
$(BIN)/.installed: pyproject.toml | $(BIN)/python
	@driver=$$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1); \
	extra=""; \
	if [ -n "$$driver" ] && [ "$${driver%%.*}" -ge 580 ]; then extra="[gpu]"; \
	elif [ -n "$$driver" ]; then echo "driver $$driver is older than 580 (CUDA 13): the GPU is not used"; fi; \
	echo "installing flopwatch$$extra into $(VENV) (about 175 MB once)"; \
	$(BIN)/python -m pip install --quiet --editable ".$$extra"
	@touch $@

$(BIN)/.installed-dev: $(BIN)/.installed
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV) build dist gate-out
