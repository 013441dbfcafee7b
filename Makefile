# A newcomer's two commands: `make nightly` and `make test`. Each does its own set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SUITE_READY := $(VENV)/.suite-installed
TEST_READY := $(VENV)/.test-installed
NODE_READY := tests/node/node_modules/.installed
# The newest pip reads an index in less than half the time of those that come with Python 3.11.
# Bytecode is made as modules are first imported: pip would compile ten times as much as is ever used.
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile --constraint constraints.txt
unexport PYTHONDONTWRITEBYTECODE

.PHONY: nightly test test-all lint bench bench-detection clean help

help:
	@echo "make nightly    measure the smoke suite on this machine's CPU and compare with the nights before"
	@echo "make test       the tests of the default CI"
	@echo "make test-all   also the long ones"
	@echo "make lint       ruff and the import rules"
	@echo "make bench      what the harness itself costs"
	@echo "make bench-detection DATA=FOLDER   how well changes are found, on labelled histories and simulated fleets"

# Exit 0 (clean) and 1 (regression found) are both a nightly that worked; 2 is a broken one.
nightly: $(SUITE_READY)
	@$(BIN)/torchbench nightly --config nightly.yaml; code=$$?; test $$code -le 1

# Tests that compare measured times run alone, the others two at a time, each with one thread of torch's: CI has two cores.
test: $(TEST_READY) $(NODE_READY)
	$(BIN)/python -m pytest -m "quiet and not long" --durations=10
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not quiet and not long" -n 2 --dist worksteal --durations=60

test-all: $(TEST_READY) $(NODE_READY)
	$(BIN)/python -m pytest -m quiet
	$(BIN)/python -m pytest -m "not quiet" -n 2 --dist worksteal

lint: $(TEST_READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

bench: $(TEST_READY)
	$(BIN)/python tests/bench/harness_cost.py

# Eleven minutes on a free core; the first run installs the other detectors and takes twenty more for their answers and
# twenty, shared by all cores, for the simulated fleets.
DATA ?= ../shared/data
bench-detection: $(TEST_READY)
	$(BIN)/python tests/bench/detection $(DATA) $(if $(ONLY),--only $(ONLY))

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "torchbench needs Python 3.11 or newer; call make with PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	@touch $@

$(SUITE_READY): $(VENV)/.created pyproject.toml constraints.txt
	@echo "installing torchbench, torch, timm and transformers into $(VENV) (once, some minutes)"
	$(PIP) --editable '.[all]'
	@touch $@

$(TEST_READY): $(VENV)/.created pyproject.toml constraints.txt
	@echo "installing torchbench, torch, timm, transformers and the test tools into $(VENV) (once, some minutes)"
	$(PIP) --editable '.[all,test]'
	@touch $(SUITE_READY) $@

# An emulator of GitHub, and a collection of its events; without node 20 and npm the tests run on our own fake alone.
$(NODE_READY): tests/node/package-lock.json
	@if command -v npm >/dev/null && node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)'; \
	then npm ci --prefix tests/node --silent --no-audit --no-fund && touch $@; \
	else echo "no npm, or a node before 20: the tests against the emulator of GitHub are skipped"; fi

clean:
	rm -rf $(VENV) tests/node/node_modules .nightly .bench-detection build dist *.egg-info
