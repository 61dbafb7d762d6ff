# Every target sets up .venv by itself; only Python 3.11, git and make are needed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SHOWN := $(VENV)/.shown
DOCUMENTED := $(VENV)/.documented
AUDITING := $(VENV)/.auditing
# Several at once: tests wait for processes, and those of systems the most. How long each took is left for
# tools/record_durations.py.
WORKERS := 3
PYTEST = $(BIN)/pytest -n $(WORKERS) --dist worksteal --junitxml build/durations/$@.xml $(IN_ROOM)

# ROOM=aws: only tests of what has that in its path.
IN_ROOM = $(if $(ROOM),-k '$(ROOM)')

.PHONY: help demo test test-all test-slow test-long check mutants audit bench docs test-system test-terraform test-kubernetes format clean

help:
	@echo 'make demo            show the product at work'
	@echo 'make test            run the tests'
	@echo 'make test-slow       run the tests that start many processes: minutes more; ROOM=aws: of one room'
	@echo 'make test-all        all of it, one part after the other: an hour; FROM=test-slow goes on from there'
	@echo 'make test-long       run more cases of what the others try a few of: an hour'
	@echo 'make check           lint, types, import directions'
	@echo 'make mutants         put faults into the code and see whether tests notice; ROOM=money: of one room'
	@echo 'make audit           look for published flaws of the versions in constraints.txt'
	@echo 'make bench           run every measured claim'
	@echo 'make docs            build the documentation as a site: build/site/index.html'
	@echo 'make test-system     run the tests that need system packages (installs them)'
	@echo 'make test-kubernetes run the tests in a real control plane, whose programs KUBEBUILDER_ASSETS names'
	@echo 'make test-terraform  run the tests that need terraform and a mirror of its provider for AWS (TF_PLUGIN_DIR)'

define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Tradewind needs Python 3.11 or newer; '$(PYTHON)' is older. hint: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@$(BIN)/python tools/install.py $(2) -e '.[$(1)]'
	@touch $@
endef

# Rebuilt whenever what is installed could differ.
$(READY): pyproject.toml constraints.txt
	$(call install,dev,--quiet)
	@touch $(SHOWN)

# The demo needs a small part of what the tests do; whoever waits for it sees what is fetched.
$(SHOWN): pyproject.toml constraints.txt
	@echo 'Installing Tradewind and PyTorch into $(VENV), once: about 250 MB.'
	$(call install,torch,)

# The site needs Sphinx, and nothing of ours.
$(DOCUMENTED): pyproject.toml constraints.txt
	$(call install,docs)

$(AUDITING): pyproject.toml constraints.txt
	$(call install,audit,--quiet)

demo: $(SHOWN)
	@$(BIN)/tradewind demo

test: $(READY)
	$(PYTEST) -m 'not slow and not long and not system and not terraform'

# All that has to pass before a release, with a line for each part.
test-all: $(READY)
	@$(BIN)/python tools/test_all.py $(FROM)

# Apart, so that whoever changes something need not wait for them each time.
test-slow: $(READY)
	$(PYTEST) -m 'slow and not long and not system and not terraform'

# More cases of what the others try a few of. Before a release, and after a change to what they are about.
test-long: $(READY) $(DOCUMENTED)
	sh tools/install-system-packages.sh
	$(PYTEST) -m 'long and not terraform'

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest tests/test_import_directions.py

# Whether the tests would notice: faults of tools/mutants.toml, one at a time.
mutants: $(READY)
	$(BIN)/python tools/mutants.py $(ROOM)

# Without a network it says so and does not fail.
audit: $(AUDITING)
	@$(BIN)/python tools/audit.py

bench: $(READY)
	$(BIN)/tradewind bench startup
	$(BIN)/tradewind bench catalog
	$(BIN)/tradewind bench plan
	$(BIN)/tradewind bench journal
	$(BIN)/tradewind bench controller
	$(BIN)/tradewind bench recovery
	$(BIN)/tradewind bench chaos
	$(BIN)/tradewind bench checkpoint
	$(BIN)/tradewind bench loader
	$(BIN)/tradewind bench telemetry
	$(BIN)/tradewind sim faults

# Opens from a disk and needs no network. A link that leads nowhere, or a page that is in no list, is an error.
docs: $(DOCUMENTED)
	@rm -rf build/site
	$(BIN)/sphinx-build -q -E -W --keep-going -n -c tools/site -d build/doctrees . build/site
	@echo 'build/site/index.html'

test-system: $(READY) $(DOCUMENTED)
	sh tools/install-system-packages.sh
	$(PYTEST) -m 'system and not long'

# Not part of what has to pass: neither of the two can be had everywhere, and nothing here fetches them.
test-terraform: $(READY)
	@echo 'Needs terraform in PATH, and TF_PLUGIN_DIR=a mirror (`terraform providers mirror`) with hashicorp/aws.'
	$(BIN)/pytest -m terraform

# Not part of what has to pass: no registry has the programs of a control plane. It starts from KUBEBUILDER_ASSETS, and
# tests/control_plane.py says what is missing.
test-kubernetes: $(READY)
	@cluster=$$($(BIN)/python -m tests.control_plane) && TRADEWIND_TEST_CLUSTER="$$cluster" \
	  $(BIN)/pytest -m system tests/system/kubernetes/test_runs.py tests/system/kubernetes/test_training.py \
	  tests/system/kubernetes/test_exports.py

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
