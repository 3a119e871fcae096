# Needs Python 3.11 or newer, pip, make and git; Go, if the real control plane is to be built. Everything else is fetched
# by the rules below, into this folder and ~/.cache; as root on Debian a headless Chromium too (ten seconds).

PYTHON ?= python3
# What `make build` builds; the template's defaults. `host` is this machine's own.
RUNTIME ?= python3.13
ARCHITECTURE ?= arm64
# How many processes run tests. More than there are processors fill the time in which a test waits for a real API server.
WORKERS ?= 3
# How long `make soak` takes, and what its random choices come from.
STEPS ?= 10000
SEED ?= 0

UV_VERSION := 0.13.9
SAM_VERSION := 1.170.0
RIC_VERSION := 4.2.2

UV := .cache/uv/bin/uv
SAM := .venv-sam/bin/sam
export PYTHONPATH :=
# What was compiled is kept, also where a container asks for the contrary: importing without it takes twice as long.
export PYTHONDONTWRITEBYTECODE :=
export UV_PYTHON_DOWNLOADS := never
export SAM_CLI_TELEMETRY := 0
# SAM asks for a region even to look at a template, and must not look for credentials on a network that has none.
export AWS_DEFAULT_REGION ?= us-east-1
export AWS_EC2_METADATA_DISABLED := true

.DEFAULT_GOAL := help
.PHONY: help setup demo test fuzz soak lint types format check-build build build-host smoke bench bench-small judge consolidation churn webhook-bench oracle controlplane sam-local deploy

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/.current ## Create .venv from the lock, with .venv/bin/joinery in it

demo: setup ## Replay a story through the real handlers, on the simulator
	@.venv/bin/joinery simulate

test: setup ## Everything: lint, types, contracts, drift, build, smoke, tests
	@$(MAKE) --no-print-directory -j3 --output-sync=target lint types smoke
	@assets=$${KUBEBUILDER_ASSETS:-}; \
	if [ -z "$$assets" ]; then \
		if command -v go >/dev/null; then assets=$$(tools/controlplane/build) || exit 1; \
		else echo "### Go is not at hand and KUBEBUILDER_ASSETS is not set: tests on a real control plane are SKIPPED ###"; fi; \
	fi; \
	tools/browser/install >/dev/null || echo "### pages are NOT LOOKED AT in a real browser ###"; \
	KUBEBUILDER_ASSETS=$$assets .venv/bin/pytest -n $(WORKERS)

fuzz: setup ## Every property with new examples, 50 times as many as in `make test` (hours; FUZZ="tests/unit/verification --hypothesis-seed=7")
	@.venv/bin/pytest -n $(WORKERS) --one-by-one -m hypothesis --hypothesis-profile=fuzz $(FUZZ)

soak: setup ## A node's life under fire: random faults, every call failing, every two doors interleaved (STEPS=10000 SEED=0)
	@assets=$${KUBEBUILDER_ASSETS:-}; if [ -z "$$assets" ] && command -v go >/dev/null; then assets=$$(tools/controlplane/build) || exit 1; fi; \
	KUBEBUILDER_ASSETS=$$assets .venv/bin/pytest -n $(WORKERS) --one-by-one -m soak --soak=$(STEPS) --soak-seed=$(SEED) $(SOAK)

lint: setup ## Format, lint, import contracts, and whatever is generated and may have drifted
	.venv/bin/ruff format --check --quiet . || { .venv/bin/ruff format --diff --quiet . | head -40; exit 1; }
	.venv/bin/ruff check --quiet .
	.venv/bin/lint-imports --no-cache | tail -n 12
	$(UV) lock --check --quiet
	@$(EXPORT) | diff -u layers/dependencies/requirements.txt - \
		|| { echo "layers/dependencies/requirements.txt is not the lock's: make layers/dependencies/requirements.txt"; exit 1; }
	.venv/bin/python -m tools.crds --check

types: setup ## mypy, strict
	.venv/bin/mypy

format: setup ## Format the code and sort its imports
	.venv/bin/ruff format --quiet .
	.venv/bin/ruff check --quiet --fix .

build: setup $(SAM) ## sam build, prune, compile bytecode (RUNTIME=python3.13 ARCHITECTURE=arm64)
	@$(SAM) validate --lint
	@.venv/bin/python -m tools.build --runtime $(RUNTIME) --architecture $(ARCHITECTURE) --sam $(SAM)

build-host: ## The same for this machine's own Python and architecture
	@$(MAKE) --no-print-directory build RUNTIME=host ARCHITECTURE=host

smoke: build-host .venv-ric/.current ## Import every door from the build, and nothing else
	@.venv/bin/python -m tools.smoke --runtime-packages $(RUNTIME_PACKAGES)

bench: $(if $(SCENARIOS),setup,build-host .venv-ric/.current) ## Measure everything, or packing alone (SCENARIOS=FOLDER BENCH="--json FILE")
ifdef SCENARIOS
	@.venv/bin/python -m tools.bench_packing $(SCENARIOS) --wide $(BENCH)
else
	@for script in tools/bench*.py; do .venv/bin/python -m tools.$$(basename $$script .py) || exit 1; done
endif

bench-small: setup ## How near their bounds plans for 1 to 200 pods are
	@.venv/bin/python -m tools.bench_bound

judge: setup ## Plan a folder of scenarios and have a judge check each plan (SCENARIOS=FOLDER JUDGE=BINARY NAMES="...")
	@.venv/bin/python -m tools.scenarios --judge "$(or $(JUDGE),$(error give JUDGE=BINARY))" \
		--scenarios "$(or $(SCENARIOS),$(error give SCENARIOS=FOLDER))" $(NAMES)

consolidation: setup ## Decide about a folder of clusters, and say how good that is (FILES=FOLDER CATALOG=FILE JUDGE=BINARY ARGUMENTS="--again --free NAME...")
	@.venv/bin/python -m tools.consolidation --files "$(or $(FILES),$(error give FILES=FOLDER))" \
		--catalog "$(or $(CATALOG),$(error give CATALOG=FILE))" $(if $(JUDGE),--judge "$(JUDGE)") $(ARGUMENTS)

churn: setup ## Play days of a cluster under several rules of consolidation (some minutes a day and rule; CHURN="--seed 1 2 --rule karpenter joinery")
	@.venv/bin/python -m tools.churn $(CHURN)

webhook-bench: setup ## What a slow webhook costs the real scheduler (ten minutes)
	@KUBEBUILDER_ASSETS=$${KUBEBUILDER_ASSETS:-$$(tools/controlplane/build)} .venv/bin/python -m tools.webhook_bench

oracle: setup ## Have the real scheduler bind plans, and clusters that are consolidated (an hour; ORACLE="consolidation --count 20")
	@KUBEBUILDER_ASSETS=$${KUBEBUILDER_ASSETS:-$$(tools/controlplane/build)} .venv/bin/python -m tests.oracle $(ORACLE)

controlplane: ## Build the real control plane (five minutes once, needs Go) and print its folder
	@tools/controlplane/build

sam-local: setup ## sam local invoke with every sample event, where a container engine is at hand (three minutes)
	@.venv/bin/python -m tools.sam_local --check
	@$(MAKE) --no-print-directory build-host
	@.venv/bin/python -m tools.sam_local --sam $(SAM)

deploy: build ## Build for Lambda and deploy (DEPLOY="--guided" the first time)
	@$(SAM) deploy $(DEPLOY)

# --- what the targets are made of ---

RUNTIME_PACKAGES = $(wildcard .venv-ric/lib/python3*/site-packages)
EXPORT = $(UV) export --quiet --frozen --no-dev --no-emit-project --no-hashes --no-header --no-annotate

layers/dependencies/requirements.txt: uv.lock $(UV)
	$(EXPORT) --output-file $@ >/dev/null

$(UV):
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target .cache/uv uv==$(UV_VERSION)

.venv/.current: pyproject.toml uv.lock | $(UV)
	@$(UV) sync --quiet --frozen --all-extras --python $(PYTHON)
	@touch $@

# The SAM CLI pins half of PyPI: it lives by itself.
$(SAM): | $(UV)
	@$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv-sam
	@$(UV) pip install --quiet --python .venv-sam/bin/python aws-sam-cli==$(SAM_VERSION)

# What the Lambda runtime brings along: its interface client, and boto3.
.venv-ric/.current: uv.lock | $(UV)
	@$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv-ric
	@$(EXPORT) --extra cli | $(UV) pip install --quiet --python .venv-ric/bin/python --constraints - awslambdaric==$(RIC_VERSION) boto3
	@touch $@
