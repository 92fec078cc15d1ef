# `make help` lists what there is. Needs Python 3.11 or later, Node 20 or later for the web pages, and make.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv)
# Empty when Node is missing or too old.
NODE := $(shell node -p 'parseInt(process.versions.node) >= 20 ? "yes" : ""' 2>/dev/null)
WEB := web-client
WEB_SOURCES := $(shell find $(WEB) schema/schema.graphql \( -name node_modules -o -name dist -o -name '*.tsbuildinfo' -o -path '*/src/api/schema.d.ts' \) -prune \
	-o -type f -print 2>/dev/null)
EXAMPLES := examples/clients
# Empty when no file of the web pages differs from the last commit.
WEB_CHANGES = $(shell git status --porcelain -- $(WEB) schema/schema.graphql 2>/dev/null)
# Handed on to `noroshi up` or pytest: make run ARGS="--port 9000", make test ARGS="tests/storage -x".
ARGS ?=

# Without compiled modules, each of the hundreds of processes that the tests start takes a second longer to import them.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup buckets client-packages clients web web-check web-format web-test web-quick run test test-gate quick record format check schema docs access lock wheel soak lab mutants guards figures screenshots clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.installed ## Install the locked Python packages into .venv
	@:

run: setup web ## Run the whole product with demo data; ARGS="--port 9000" and the like are handed on
	@exec $(BIN)/noroshi up --demo $(ARGS)

# Tests wait as much as they work: four at a time keep two cores busy. Files go in the order of their names, so that
# those of e2e, which are few tests and take long, come first and no worker is left with one in the end.
PARALLEL := -n 4 --dist loadfile --no-loadscope-reorder
SLOWEST := --durations 20

test: setup buckets web web-test client-packages ## Run every test but the soak tests
	$(BIN)/pytest $(PARALLEL) $(SLOWEST) $(ARGS)

test-gate: setup buckets web web-test client-packages ## Run every test as CI does: tests that fail run once more, one at a time
	$(BIN)/python .ci/run_tests.py $(PARALLEL) $(SLOWEST) $(ARGS)

quick: setup buckets web-quick ## Run the tests that changes of the work tree can affect; ARGS="--since main" and the like
	@$(BIN)/python -m tests.affected -q $(subst --no-loadscope-reorder,,$(PARALLEL)) $(ARGS)

record: setup buckets web client-packages ## Record which test executes which functions, for `make quick`; runs what is not recorded yet
	@$(BIN)/python -m tests.affected --record -q $(PARALLEL)

format: setup web-format ## Format all code, and fix what linters can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: setup web-check ## Report problems of format, lint, types, imports and the exported schema; change nothing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/noroshi schema | diff -u schema/schema.graphql -

schema: setup ## Export the GraphQL schema to schema/schema.graphql
	$(BIN)/noroshi schema > schema/schema.graphql.new
	mv schema/schema.graphql.new schema/schema.graphql

docs: setup ## Write docs/settings.md from the settings
	$(BIN)/noroshi settings > docs/settings.md

access: setup ## Write the tables of docs/access.md from what a running product permits
	NOROSHI_WRITE_ACCESS_TABLES=1 $(BIN)/pytest -q tests/resolvers/test_access.py -k tables_say

lock: setup ## Renew the lock files of Python packages from pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --all-extras --group dev pyproject.toml \
		-o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --group buckets -o requirements.buckets.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --group clients -o requirements.clients.lock

buckets: $(VENV)/buckets/.installed ## Install moto, the S3 server of the tests, into an environment of its own
	@:

$(VENV)/buckets/.installed: requirements.buckets.lock $(VENV)/.installed
	$(PYTHON) -m venv $(VENV)/buckets
	$(BIN)/uv pip install --quiet --python $(VENV)/buckets/bin/python --require-hashes -r requirements.buckets.lock
	@touch $@

clients: setup web client-packages $(VENV)/clients/.installed ## Run every client of docs/clients against the built wheel
	@$(BIN)/python -m tests.client_table

$(VENV)/clients/.installed: requirements.clients.lock $(VENV)/.installed
	$(PYTHON) -m venv $(VENV)/clients
	$(BIN)/uv pip install --quiet --python $(VENV)/clients/bin/python --require-hashes -r requirements.clients.lock
	@touch $@

wheel: setup web ## Build the wheel, with the web client in it, into dist/
	$(BIN)/hatchling build --target wheel

soak: setup web ## Run the soak tests, on both MongoDB drivers
	NOROSHI_MONGO_DRIVER=motor $(BIN)/pytest -m soak --timeout 0 $(ARGS)
	NOROSHI_MONGO_DRIVER=pymongo $(BIN)/pytest -m soak --timeout 0 $(ARGS)
	NOROSHI_MONGO_DRIVER=motor $(BIN)/pytest tests/storage

lab: setup ## Run workloads under faults on three hosts in network namespaces; ARGS="--seed 7 --minutes 5" and the like
	@$(BIN)/python -m tests.lab $(ARGS)

mutants: setup ## Change the product in small ways in a copy, and report changes that no test notices; ARGS="storage/locks.py"
	$(BIN)/python -m tests.mutants $(ARGS)

guards: setup ## Remove guards of docs/security.md in a copy and show which test fails; ARGS="--seed 7 --count 10"
	$(BIN)/python -m tests.mutants.guards $(ARGS)

figures: setup ## Measure what users feel: pages beside other servers, screens, posts, reactions and connects (15 minutes)
	$(BIN)/python -m benchmarks.peers --rounds 3
	$(BIN)/python -m benchmarks.screens
	$(BIN)/python -m benchmarks.posting --web 1
	$(BIN)/python -m benchmarks.posting --web 1 --action reaction
	$(BIN)/python -m benchmarks.reconnects --cuts 1

screenshots: setup web ## Take the screenshots of docs/ of a product with demo data
	$(BIN)/python -m tests.e2e.screenshots

clean: ## Remove what was installed and built; data stay
	rm -rf $(VENV) $(WEB)/node_modules $(EXAMPLES)/node_modules $(WEB)/dist benchmarks/peers/node_modules dist *.egg-info
	rm -rf .testmon .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/.installed: requirements.lock pyproject.toml
ifdef UV
	$(UV) venv --quiet --allow-existing --python $(PYTHON) $(VENV)
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps -e .
else
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
endif
	@touch $@

ifeq (,$(wildcard $(WEB)/package-lock.json))
web:
	@echo "There is no $(WEB)/package-lock.json: the product runs without its web pages."
web-check web-format web-test web-quick client-packages:
	@:
else ifeq (,$(NODE))
web:
	@echo "Node.js 20 or later is not installed: the product runs without its web pages."
web-check web-format web-test web-quick client-packages:
	@echo "Node.js 20 or later is not installed: the web client and the example clients are not checked."
else
web: $(WEB)/dist/index.html ## Build the web pages when they have changed
	@:

web-check: $(WEB)/node_modules/.installed $(EXAMPLES)/node_modules/.generated
	cd $(WEB) && npm run --silent check
	cd $(EXAMPLES) && npm run --silent check

web-format: $(WEB)/node_modules/.installed
	cd $(WEB) && npm run --silent format
	cd $(EXAMPLES) && npm run --silent format

client-packages: $(EXAMPLES)/node_modules/.installed ## Install the packages of the example clients
	@:

web-test: $(WEB)/node_modules/.installed
	cd $(WEB) && npm run --silent test

web-quick: $(if $(WEB_CHANGES),$(WEB)/node_modules/.installed)
	$(if $(WEB_CHANGES),cd $(WEB) && npx vitest run --changed --passWithNoTests)

$(WEB)/node_modules/.installed: $(WEB)/package-lock.json
	cd $(WEB) && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

$(EXAMPLES)/node_modules/.installed: $(EXAMPLES)/package-lock.json
	cd $(EXAMPLES) && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

$(EXAMPLES)/node_modules/.generated: $(EXAMPLES)/node_modules/.installed schema/schema.graphql \
		$(wildcard $(EXAMPLES)/*/*.ts $(EXAMPLES)/relay/operations.js)
	cd $(EXAMPLES) && npm run --silent generate
	@touch $@

$(WEB)/dist/index.html: $(WEB)/node_modules/.installed $(WEB_SOURCES)
	cd $(WEB) && npm run build
	@touch $@
endif
