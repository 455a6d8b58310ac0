# `make demo`: a first look.  `make results`: from a fresh clone to the paper.  `make docs`: the site.  `make test`: the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RESULTS := results
# set-up is done again only when the pins change: the stamp is named by their content
PINS := $(shell cat constraints.txt constraints-dev.txt pyproject.toml | cksum | tr ' ' '-')
READY := $(VENV)/ready-$(PINS)
# errors alone: a mirror's warnings, a line a package, would hide them
INSTALL := @$(BIN)/python -m pip install -qq -c constraints.txt -c constraints-dev.txt

SPHINX := python -m sphinx -E -W --keep-going -n -q -d docs/_build/doctrees

export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: results demo paper docs docs-links test test-long test-docs test-paper test-sharing test-faults test-slurm test-gpu tools lint lint-github format schema readme evidence verify image prune clean

results: $(READY)
	snakemake --cores 4

demo: $(READY) # everything, small, in a folder of its own: what it looks like, and no more
	snakemake --directory demo --configfile config/tiny.yaml --cores 2
	@echo 'This was a demonstration: models too small, and too few, to decide anything. `make results` does.'

paper: $(READY)
	dvc repro

docs: $(READY)-docs
	$(SPHINX) -b html docs docs/_build/html
	@echo 'The site: docs/_build/html/index.html'

docs-links: $(READY)-docs # of other sites: needs a network
	$(SPHINX) -b linkcheck docs docs/_build/linkcheck

test: $(READY)
	pytest -n 2 --no-loadscope-reorder -m 'not long'

PART := 1/1
test-long: $(READY) # PART=1/3 runs the first third of the tests, here and in test-sharing and test-faults
	pytest -m long --part $(PART)

test-docs: $(READY)-docs
	pytest tests/docs

test-paper: $(READY)-browser # what the workflow has made, in a browser and through LaTeX
	NORMSCOPE_PAPER=$(RESULTS)/paper NORMSCOPE_PAGE=$(RESULTS)/paper/summary.html pytest -n 2 tests/browser tests/latex

test-sharing: $(READY)-engines # the store by a directory and by S3, in clones
	pytest tests/sharing --part $(PART)

KILLS := 200
TARGET := paper
RECORD :=
test-faults: $(READY) # prints what each fault left; TARGET=models is shorter, RECORD=docs/faults.yaml publishes the table
	pytest -s tests/faults tests/workflow/test_hostile_config.py --part $(PART) --kills $(KILLS) --target $(TARGET) $(RECORD:%=--record %)

test-slurm: $(READY)-engines # as root: starts a Slurm of one node, and stops it
	pytest -s tests/slurm

test-gpu: $(READY) # on a GPU that torch can use; skipped without one
	pytest -rs tests/gpu

lint: $(READY)-lint lint-github
	ruff check
	ruff format --check
	snakefmt --check Snakefile workflow
	pyright
	lint-imports
	snakemake --lint
	hadolint Dockerfile

lint-github: $(READY)-lint # workflows, issue forms and citation: their schemas, permissions and pinned actions
	check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	check-jsonschema --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	check-jsonschema --builtin-schema vendor.citation-file-format --default-filetype yaml CITATION.cff
	zizmor --offline --quiet .github

format: $(READY)-lint
	ruff check --fix
	ruff format
	snakefmt Snakefile workflow

schema: $(READY)
	python -m normscope.config > workflow/schemas/config.schema.json

readme: $(READY)
	python docs/readme.py

evidence: $(READY) # the run that decides the statements: hours; what it found is kept in evidence/
	snakemake --cores 4 --configfile config/paper.yaml
	python scripts/evidence.py

verify: $(READY) # a random tenth of the evidence's small models, trained again here
	snakemake --cores 4 results/dataset/meta.json
	python scripts/verify.py

BUILD :=
image: # for executors that need one: docs/howto/executors.md
	buildah build $(BUILD) --tag normscope .

prune: $(READY) # of the store: what neither config.yaml nor a variant in config/ asks for
	python scripts/prune.py

clean:
	rm -rf $(VENV)

$(READY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'error: normscope needs Python 3.11 or newer; name one with: make PYTHON=python3.12'; exit 1; }
	@echo 'Setting up $(VENV) from constraints.txt (a few minutes the first time) ...'
	@$(PYTHON) -m venv --clear $(VENV)
	$(INSTALL) -e '.[test]'
	@touch $@

tools: $(READY) # all that the other targets install, at once
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
