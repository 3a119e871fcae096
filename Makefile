# Needs Python 3.11 or newer, pip, make and git; Go, if the real control plane is to be built. Everything else is fetched
# by the rules below, into this folder and ~/.cache; as root on Debian a headless Chromium too (ten seconds).

# A check whose output is cut short fails all the same.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

PYTHON ?= python3
# What is built and deployed, instead of what the template says: python3.12, x86_64; `host` is this machine's own.
RUNTIME ?=
ARCHITECTURE ?=
# How many processes run tests. More than there are processors fill the time in which a test waits for a real API server.
WORKERS ?= 3
# How long `make soak` takes, and what its random choices come from.
STEPS ?= 10000
SEED ?= 0

# Where the cluster is, for `make deploy` and `make rotate-token`. Taken before SAM's own default below.
REGION ?= $(or $(AWS_REGION),$(AWS_DEFAULT_REGION))
REGION := $(REGION)

UV_VERSION := 0.13.9
SAM_VERSION := 1.170.0
RIC_VERSION := 4.2.2
CFN_LINT_VERSION := 1.58.0
CHECKOV_VERSION := 3.3.30
MINISTACK_VERSION := 1.5.33

UV := .cache/uv/bin/uv
# A person at a terminal sees what is fetched; a log does not.
QUIET := $(shell [ -t 2 ] || echo --quiet)
SAM := .venv-sam/bin/sam
LINTERS := .venv-lint/.cfn-lint-$(CFN_LINT_VERSION)-checkov-$(CHECKOV_VERSION)
export PYTHONPATH :=
# What was compiled is kept, also where a container asks for the contrary: importing without it takes twice as long.
export PYTHONDONTWRITEBYTECODE :=
export UV_PYTHON_DOWNLOADS := never
export SAM_CLI_TELEMETRY := 0
# SAM asks for a region even to look at a template, and must not look for credentials on a network that has none.
export AWS_DEFAULT_REGION ?= us-east-1
export AWS_EC2_METADATA_DISABLED := true

.DEFAULT_GOAL := help
.PHONY: help setup demo test fuzz soak hostile lint types format check-build build build-host package release smoke bench bench-small judge consolidation churn webhook-bench oracle controlplane sam-local deploy deploy-test undeploy rotate-token docs session

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/.current ## Create .venv from the lock, with .venv/bin/joinery in it

demo: setup ## Replay a story through the real handlers, on the simulator; with CLUSTER=kubeconfig live on a kind or kwok cluster
ifdef CLUSTER
	@.venv/bin/joinery kwok --kubeconfig "$(CLUSTER)" --demo
else
	@mkdir -p build
	@.venv/bin/joinery simulate --records build/demo
	@.venv/bin/joinery history build/demo -o html > build/demo.html
	@echo && echo "Its decisions as a page:  python3 -m webbrowser -t build/demo.html"
endif

test: setup ## Everything: lint, types, contracts, drift, build, smoke, tests
	@$(MAKE) --no-print-directory -j3 --output-sync=target lint types smoke tests/__pycache__
	@assets=$${KUBEBUILDER_ASSETS:-}; \
	if [ -z "$$assets" ]; then \
		if command -v go >/dev/null; then assets=$$(tools/controlplane/build) || exit 1; \
		else echo "### Go is not at hand and KUBEBUILDER_ASSETS is not set: tests on a real control plane are SKIPPED ###"; fi; \
	fi; \
	tools/browser/install >/dev/null || echo "### pages are NOT LOOKED AT in a real browser ###"; \
	KUBEBUILDER_ASSETS=$$assets .venv/bin/pytest -n $(WORKERS)

deploy-test: build-host .venv-standin/.current $(SAM) ## Deploy the build on a stand-in of the account beside a real control plane (seven minutes)
	@KUBEBUILDER_ASSETS=$${KUBEBUILDER_ASSETS:-$$(tools/controlplane/build)} .venv/bin/pytest -v -n 0 tests/deploy

fuzz: setup ## Every property with new examples, 50 times as many as in `make test` (hours; FUZZ="tests/unit/decisions/verification --hypothesis-seed=7")
	@.venv/bin/pytest -n $(WORKERS) --one-by-one -m hypothesis --hypothesis-profile=fuzz $(FUZZ)

soak: setup ## A node's life under fire: random faults, every call failing, every two doors interleaved (STEPS=10000 SEED=0)
	@assets=$${KUBEBUILDER_ASSETS:-}; if [ -z "$$assets" ] && command -v go >/dev/null; then assets=$$(tools/controlplane/build) || exit 1; fi; \
	KUBEBUILDER_ASSETS=$$assets .venv/bin/pytest -n $(WORKERS) --one-by-one -m soak --soak=$(STEPS) --soak-seed=$(SEED) $(SOAK)

hostile: setup ## How long hostile pods keep a decision and what memory they take (an hour; HOSTILE="--kinds repelling --limits 1")
	@.venv/bin/python -m tools.bench.hostile $(HOSTILE)

lint: setup .cache/template-linted ## Format, lint, import contracts, and whatever is generated and may have drifted
	.venv/bin/ruff format --check --quiet . || { .venv/bin/ruff format --diff --quiet . | head -40; exit 1; }
	.venv/bin/ruff check --quiet .
	.venv/bin/lint-imports --no-cache | tail -n 20
	$(UV) lock --check --quiet
	@$(EXPORT) | diff -u layers/dependencies/requirements.txt - \
		|| { echo "layers/dependencies/requirements.txt is not the lock's: make layers/dependencies/requirements.txt"; exit 1; }
	.venv/bin/python -m tools.crds --check
	.venv/bin/python -m tools.version --check
	.venv/bin/python -m tools.member --check
	.venv/bin/python -m tools.reference --check

# Twenty seconds, so only if a template has changed.
.cache/template-linted: template.yaml member.yaml .cfnlintrc.yaml .checkov.yaml $(LINTERS)
	.venv-lint/bin/cfn-lint
	@LOG_LEVEL=ERROR .venv-lint/bin/checkov --config-file .checkov.yaml
	@touch $@

# In a fresh clone every worker would compile all tests, for ten seconds each. What is wrong with one, its run says.
tests/__pycache__: | setup
	@.venv/bin/pytest -n 0 --collect-only -qq >/dev/null || true

types: setup ## mypy, strict
	.venv/bin/mypy

format: setup ## Format the code and sort its imports
	.venv/bin/ruff format --quiet .
	.venv/bin/ruff check --quiet --fix .

build: setup ## Layers and functions as Lambda takes them, with bill of materials and licences (RUNTIME=python3.12 ARCHITECTURE=x86_64)
	@$(BUILD)

build-host: $(SAM) ## The same for this machine's own Python and architecture, with what emulates Lambda
	@$(MAKE) --no-print-directory build RUNTIME=host ARCHITECTURE=host

package: setup ## Wheel, source distribution and kubectl plugin, for users without a clone, in dist
	@.venv/bin/python -m tools.package --uv $(UV)

release: setup $(SAM) ## Build and check all that a release has, and say how it is published (BUCKET=artifacts REGION=eu-central-1 RELEASES=https://…)
	@$(BUILD)
	@.venv/bin/python -m tools.release --uv $(UV) --sam $(SAM) --region "$(REGION)" --bucket "$(BUCKET)" --releases "$(RELEASES)"

smoke: build-host .venv-ric/.current ## Import every door from the build, and nothing else
	@.venv/bin/python -m tools.smoke --runtime-packages $(RUNTIME_PACKAGES)

bench: $(if $(SCENARIOS),setup,build-host .venv-ric/.current) ## Measure everything, or packing alone (SCENARIOS=FOLDER BENCH="--markdown FILE")
ifdef SCENARIOS
	@.venv/bin/python -m tools.bench.packing $(SCENARIOS) --wide $(BENCH)
else
	@for bench in bound catalog coldstart consolidation fire firstfit packing snapshot start warm; do .venv/bin/python -m tools.bench.$$bench || exit 1; done
endif

bench-small: setup ## How near their bounds plans for 1 to 200 pods are
	@.venv/bin/python -m tools.bench.bound

judge: setup ## Plan a folder of scenarios and have a judge check each plan (SCENARIOS=FOLDER JUDGE=BINARY NAMES="...")
	@.venv/bin/python -m tools.bench.packing "$(or $(SCENARIOS),$(error give SCENARIOS=FOLDER))" $(NAMES) --runs 1 \
		--judge "$(or $(JUDGE),$(error give JUDGE=BINARY))"

consolidation: setup ## Decide about a folder of clusters, and say how good that is (FILES=FOLDER CATALOG=FILE JUDGE=BINARY ARGUMENTS="--again --free NAME...")
	@.venv/bin/python -m tools.consolidation --files "$(or $(FILES),$(error give FILES=FOLDER))" \
		--catalog "$(or $(CATALOG),$(error give CATALOG=FILE))" $(if $(JUDGE),--judge "$(JUDGE)") $(ARGUMENTS)

churn: setup ## Play days of a cluster under several rules of consolidation (some minutes a day and rule; CHURN="--seed 1 2 --rule karpenter joinery")
	@.venv/bin/python -m tools.churn $(CHURN)

webhook-bench: setup ## What a slow webhook costs the real scheduler (ten minutes)
	@KUBEBUILDER_ASSETS=$${KUBEBUILDER_ASSETS:-$$(tools/controlplane/build)} .venv/bin/python -m tools.bench.webhook

oracle: setup ## Have the real scheduler bind plans, and clusters that are consolidated (an hour; ORACLE="consolidation --count 20")
	@KUBEBUILDER_ASSETS=$${KUBEBUILDER_ASSETS:-$$(tools/controlplane/build)} .venv/bin/python -m tests.oracle $(ORACLE)

docs: setup .venv-docs/.current ## Build the pages as a site in build/site, and check their links (ten seconds)
	@rm -rf build/site && .venv/bin/python -m tools.pages build/pages
	@.venv-docs/bin/sphinx-build --quiet --fail-on-warning --keep-going -c docs -d build/pages-cache build/pages build/site
	@.venv/bin/python -m tools.pages --check build/site && echo "build/site/index.html"

session: setup ## Record the session of `joinery simulate --top` that README shows (wants tmux, half a minute)
	@.venv/bin/python -m tools.session && echo "docs/images/top.svg: look at it"

controlplane: ## Build the real control plane (five to fifteen minutes once, needs Go) and print its folder
	@tools/controlplane/build

sam-local: setup ## sam local invoke with every sample event, where a container engine is at hand (three minutes)
	@.venv/bin/python -m tools.sam_local --check
	@$(MAKE) --no-print-directory build-host
	@.venv/bin/python -m tools.sam_local --sam $(SAM)

# Command-line variables reach the recipe by its environment, so that a shell takes no quotes out of PARAMETERS.
# A machine of EC2 does these with its own role, and none of them takes SAM's region for the cluster's.
deploy undeploy rotate-token release: export AWS_EC2_METADATA_DISABLED := false
deploy undeploy rotate-token release: export AWS_DEFAULT_REGION := $(REGION)
deploy: setup ## Install or upgrade in clusters (CLUSTER=blue,green REGION=eu-central-1 PARAMETERS="Mode=observe" MEMBER_OF=blue)
	@test -n "$(CLUSTER)" || { echo "make deploy: say for which cluster: make deploy CLUSTER=blue REGION=eu-central-1"; exit 2; }
	@test -n "$(REGION)" || { echo "make deploy: say in which region cluster $(CLUSTER) is: REGION=eu-central-1, or AWS_REGION"; exit 2; }
	@$(DEPLOYMENT) --look
	@$(MAKE) --no-print-directory build $(SAM)
	@$(BUILD) --verify
	@$(DEPLOYMENT) -- $(DEPLOY)

rotate-token: setup ## Give the webhook a new token without a refused call, in a quarter of an hour (CLUSTER=blue REGION=eu-central-1)
	@test -n "$(CLUSTER)" || { echo "make rotate-token: say for which cluster: CLUSTER=blue REGION=eu-central-1"; exit 2; }
	@test -n "$(REGION)" || { echo "make rotate-token: say in which region cluster $(CLUSTER) is: REGION=eu-central-1, or AWS_REGION"; exit 2; }
	@.venv/bin/python -m tools.rotate_token --cluster "$(CLUSTER)" --region "$(REGION)"

undeploy: setup ## Uninstall (CLUSTER=blue REGION=eu-central-1 NODES=keep|retire BUCKET=keep|delete CRDS=keep|delete)
	@test -n "$(CLUSTER)" || { echo "make undeploy: say for which cluster: make undeploy CLUSTER=blue NODES=retire"; exit 2; }
	@test -n "$(NODES)" || { echo "make undeploy: say what becomes of nodes: NODES=retire drains and ends them, NODES=keep hands them to Karpenter"; exit 2; }
	@.venv/bin/joinery uninstall "$(CLUSTER)" --nodes "$(NODES)" $(if $(REGION),--region "$(REGION)") $(if $(BUCKET),--bucket "$(BUCKET)") $(if $(CRDS),--crds "$(CRDS)") $(UNDEPLOY)

# --- what the targets are made of ---

DEPLOYMENT = .venv/bin/python -m tools.deploy --cluster "$(CLUSTER)" --member-of "$(MEMBER_OF)" --region "$(REGION)" --sam $(SAM)
BUILD = .venv/bin/python -m tools.build --runtime "$(RUNTIME)" --architecture "$(ARCHITECTURE)" --uv $(UV)
RUNTIME_PACKAGES = $(wildcard .venv-ric/lib/python3*/site-packages)
EXPORT_ALL = $(UV) export --quiet --frozen --no-dev --no-emit-project --no-header --no-annotate
# Dependencies of the command line alone: Lambda's runtime has boto3, and no door imports the rest.
ONLY_CLI := boto3 jinja2 kubernetes rich textual typer
EXPORT = $(EXPORT_ALL) $(addprefix --prune ,$(ONLY_CLI))

layers/dependencies/requirements.txt: uv.lock $(UV)
	$(EXPORT) --output-file $@ >/dev/null

$(UV):
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target .cache/uv uv==$(UV_VERSION)

.venv/.current: pyproject.toml simulator/pyproject.toml uv.lock | $(UV)
	@$(UV) sync $(QUIET) --frozen --all-extras --python $(PYTHON)
	@touch $@

# The SAM CLI pins half of PyPI: it lives by itself.
$(SAM): | $(UV)
	@$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv-sam
	@$(UV) pip install $(QUIET) --python .venv-sam/bin/python aws-sam-cli==$(SAM_VERSION)

# These two pin half of PyPI as well.
$(LINTERS): | $(UV)
	@$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv-lint
	@$(UV) pip install $(QUIET) --python .venv-lint/bin/python cfn-lint==$(CFN_LINT_VERSION) checkov==$(CHECKOV_VERSION)
	@touch $@

# What builds the pages as a site.
.venv-docs/.current: uv.lock | $(UV)
	@UV_PROJECT_ENVIRONMENT=.venv-docs $(UV) sync $(QUIET) --frozen --only-group docs --python $(PYTHON)
	@touch $@

# A stand-in of AWS with CloudFormation. It pins boto3, and its functions run by this Python.
.venv-standin/.current: Makefile | $(UV)
	@$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv-standin
	@$(UV) pip install $(QUIET) --python .venv-standin/bin/python "ministack==$(MINISTACK_VERSION)" boto3 aws-sam-translator==1.115.0 cryptography
	@touch $@

# What the Lambda runtime brings along: its interface client, and boto3.
.venv-ric/.current: uv.lock | $(UV)
	@$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv-ric
	@$(EXPORT_ALL) --no-hashes | $(UV) pip install $(QUIET) --python .venv-ric/bin/python --constraints - awslambdaric==$(RIC_VERSION) boto3
	@touch $@
