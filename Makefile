# `make demo`: a two-minute tour.  `make results`: from a fresh clone to the paper.  `make docs`: the site.  `make test`: the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RESULTS := results
# the name of the stamp contains a checksum of the pins, so that a change of the pins repeats the set-up
PINS := $(shell cat constraints.txt constraints-dev.txt pyproject.toml | cksum | tr ' ' '-')
READY := $(VENV)/ready-$(PINS)
# pip runs quietly, so that real errors stand out
INSTALL := @$(BIN)/python -m pip install -qq -c constraints.txt -c constraints-dev.txt

SPHINX := python -m sphinx -E -W --keep-going -n -q -d docs/_build/doctrees

# a recipe finds what the command line sets in its environment, where the shell does not read it as a command
VARIABLES := NORM BUDGET RESULTS STUDIES BUILD
$(foreach name,$(VARIABLES),$(if $(filter command line,$(origin $(name))),$(eval override $(name) := $$(value $(name)))))
export $(VARIABLES)
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: results demo card gallery paper docs docs-links test test-docs test-paper test-engines test-slurm test-gpu tools lint lint-github format schema readme error-rates pilot freeze evidence verify image clean

results: $(READY)
	snakemake --cores 4

demo: $(READY) # the whole workflow with small models, in the folder demo/
	snakemake --directory demo --configfile config/tiny.yaml --cores 2

BUDGET := 5 min
card: $(READY) # the card of a norm: NORM=my_norm.py:MyNorm, or several in quotes; BUDGET="20 min" or "1 h" finds smaller differences
	$(if $(NORM),,$(error name a norm: make card NORM=my_norm.py:MyNorm))
	snakemake --cores 2 card --config "card=$$(python -c 'import json, os; print(json.dumps({"norm": os.environ["NORM"], "budget": os.environ["BUDGET"]}))')"

gallery: $(READY) # makes the cards that the site shows, those of config/gallery.yaml, and keeps their tables in evidence/card
	snakemake --cores 2 card --configfile config/gallery.yaml
	python scripts/gallery.py

paper: $(READY)
	dvc repro

docs: $(READY)-docs
	$(SPHINX) -b html docs docs/_build/html
	@echo 'The site: docs/_build/html/index.html'

docs-links: $(READY)-docs # checks external links (needs a network)
	$(SPHINX) -b linkcheck docs docs/_build/linkcheck

test: $(READY)
	pytest -n 2 --dist loadfile --no-loadscope-reorder

test-engines: $(READY)-engines # kills, damaged files, full disks, DVC, cards, kept evidence, shared stores, S3 (needs rsync and the right to mount)
	pytest -n 2 --dist loadfile tests/engines

test-docs: $(READY)-docs
	pytest tests/docs

test-paper: $(READY)-browser # opens the results in a browser and compiles them with LaTeX
	NORMSCOPE_PAPER="$$RESULTS/paper" NORMSCOPE_PAGE="$$RESULTS/paper/summary.html" pytest -n 2 tests/browser tests/latex tests/unit/pages/test_print.py

test-slurm: $(READY)-engines # run as root: starts a one-node Slurm cluster and stops it
	pytest -s tests/slurm

test-gpu: $(READY) # needs a GPU that torch can use; skipped without one
	pytest -rs tests/gpu

lint: $(READY)-lint lint-github
	ruff check
	ruff format --check
	snakefmt --check Snakefile workflow
	pyright
	lint-imports
	snakemake --lint
	hadolint Dockerfile

lint-github: $(READY)-lint # checks schemas, permissions and pinned actions in .github, and CITATION.cff
	check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*.yml
	check-jsonschema --builtin-schema vendor.citation-file-format --default-filetype yaml CITATION.cff
	zizmor --offline --quiet .github

format: $(READY)-lint
	ruff check --fix
	ruff format
	snakefmt Snakefile workflow

schema: $(READY)
	mkdir -p workflow/schemas
	python -m normscope.config > workflow/schemas/config.schema.json

readme: $(READY)
	python docs/readme.py

error-rates: $(READY) # simulates the error rates of the tests for docs/reference/claims.md (a minute)
	python benchmarks/error_rates.py docs/error_rates.csv

pilot: $(READY) # chooses learning rates on seeds that no test uses; writes data/pilot.csv
	python scripts/pilot.py

STUDIES :=
freeze: $(READY) # STUDIES="norms" fixes their settings in config/paper.yaml and their tests; commit evidence/frozen.json before a run
	$(if $(STUDIES),,$(error name the studies that will run: make freeze STUDIES="norms"))
	python scripts/freeze.py $$STUDIES

evidence: $(READY) # runs config/paper.yaml for hours and keeps the results in evidence/; STUDIES="main recall" runs and keeps these studies alone
	python scripts/evidence.py $$STUDIES

verify: $(READY) # retrains a random tenth of the small models in the evidence, and compares them
	snakemake --cores 4 texts --configfile config/paper.yaml
	python scripts/verify.py

BUILD :=
image: # a container image, for executors that need one: docs/howto/slurm.md
	buildah build $$BUILD --tag normscope .

clean:
	rm -rf $(VENV)

$(READY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'error: normscope needs Python 3.11 or newer; name one with: make PYTHON=python3.12'; exit 1; }
	@echo 'Setting up $(VENV) from constraints.txt (a few minutes the first time) ...'
	@$(PYTHON) -m venv --clear $(VENV)
	$(INSTALL) -e '.[test]'
	@touch $@

tools: $(READY) # installs everything that the other targets need
	$(INSTALL) -e '.[test,lint,docs,browser,sharing,slurm]'
	@touch $(READY)-lint $(READY)-docs $(READY)-browser $(READY)-engines

$(READY)-docs: $(READY)
	$(INSTALL) -e '.[test,docs]'
	@touch $@

$(READY)-browser: $(READY)
	$(INSTALL) -e '.[test,browser]'
	@touch $@

$(READY)-engines: $(READY)
	$(INSTALL) -e '.[test,sharing,slurm]'
	@touch $@

$(READY)-lint: $(READY)
	$(INSTALL) -e '.[test,lint,docs,browser,sharing]'
	@touch $@
