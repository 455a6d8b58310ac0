# `make results`: from a fresh clone to the paper.  `make test`: the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# set-up is done again only when the pins change: the stamp is named by their content
PINS := $(shell cat constraints.txt constraints-dev.txt pyproject.toml | cksum | tr ' ' '-')
READY := $(VENV)/ready-$(PINS)
INSTALL := $(BIN)/python -m pip install --quiet -c constraints.txt -c constraints-dev.txt

export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: results paper test lint format schema readme clean

results: $(READY)
	snakemake --cores 4

paper: $(READY)
	dvc repro

test: $(READY)
	pytest -n 2 --no-loadscope-reorder

lint: $(READY) $(READY)-lint
	ruff check
	ruff format --check
	snakefmt --check Snakefile workflow
	pyright
	snakemake --lint

format: $(READY)-lint
	ruff check --fix
	ruff format
	snakefmt Snakefile workflow

schema: $(READY)
	python -m normscope.config > workflow/schemas/config.schema.json

readme: $(READY)
	python docs/readme.py

clean:
	rm -rf $(VENV)

$(READY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'error: normscope needs Python 3.11 or newer; name one with: make PYTHON=python3.12'; exit 1; }
	@echo 'Setting up $(VENV) from constraints.txt (a few minutes the first time) ...'
	$(PYTHON) -m venv --clear $(VENV)
	$(INSTALL) -e '.[test]'
	@touch $@

$(READY)-lint: $(READY)
	$(INSTALL) -e '.[test,lint]'
	@touch $@
