# What the targets do is in .ci/step: one shell function each, so that
# `.ci/run` can do the same where make is missing. Each one visits every
# go.mod in the tree, except for what .ci/heavy lists.

.DEFAULT_GOAL := help
.NOTPARALLEL:

# How long: FUZZ_SMOKE and FUZZ for each fuzz target, SOAK steps for each
# property. AGENTS is the folder that `make agents`, `make inproc` and `make mcp`
# install programs into, and CLIENTS names the clients that `make agents` runs, with commas between (all of them).
# SCREENSHOTS is the folder that `make page` writes pictures into. VERSION is what
# `make release` and `make packages` pack. LIVE is the URL of a llama-server. BASE is the path of another
# build of the command, which `make load` measures beside this one. SEEDS is how many seeds `make simulate`
# runs, and SEED is the one that it runs. RACE is empty where there is no C compiler, which -race needs.
export FUZZ_SMOKE ?= 1s
export FUZZ ?= 10m
export SOAK ?= 100000
VERSION ?= v0.1.0
AGENTS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/toolmend-agents
LIVE ?= http://127.0.0.1:8080
BASE ?=
SEEDS ?=
SEED ?=
export RACE ?= $(if $(shell command -v cc gcc clang),-race,)

STEP := .ci/step

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## compile the command: bin/toolmend
	@$(STEP) build

check: ## all that CI runs: fmt vet lint test lib examples tidy
	@$(STEP) check

fmt: ## fail on files that gofmt would change
	@$(STEP) fmt

format: ## let gofmt change them
	@$(STEP) format

vet: ## go vet
	@$(STEP) vet

lint: ## staticcheck, at the version that .ci/step names
	@$(STEP) lint

test: ## all tests, with the race detector where it finds something
	@$(STEP) test

race: ## all tests whole, all with the race detector
	@$(STEP) race

examples: ## run the programs under examples/
	@$(STEP) examples

fuzz-smoke: ## every fuzz target for FUZZ_SMOKE (1s)
	@$(STEP) fuzz_smoke

fuzz: ## every fuzz target for FUZZ (10m)
	@$(STEP) fuzz

soak: ## every property for SOAK (100000) steps
	@$(STEP) soak

bench: ## all benchmarks, no tests
	@$(STEP) bench

heavy: ## vet lint test examples tidy for what .ci/heavy lists
	@$(STEP) heavy

agents: ## install CLIENTS (all) into AGENTS, run them, write docs/measured/clients.md
	@AGENTS="$(AGENTS)" $(STEP) agents

lib: ## the packages for Python and npm, without a framework
	@$(STEP) lib

inproc: ## install the newest frameworks into AGENTS, and test the adapters with them
	@AGENTS="$(AGENTS)" $(STEP) inproc

inproc-bench: ## what a step costs in Python and in Node: the table of docs/measured/inproc.md
	@AGENTS="$(AGENTS)" $(STEP) inproc_bench

mcp: ## MCP's conformance suite and real MCP servers, directly and behind the proxy
	@AGENTS="$(AGENTS)" $(STEP) mcp

page: ## the page of the gateway in a real browser, with pictures in SCREENSHOTS
	@$(STEP) page

site: ## build the documentation into bin/site
	@$(STEP) site

site-test: ## build it, then its pages, search, links and playground in a real browser
	@$(STEP) site_test

live: ## compare re-asks with the model of the llama-server at LIVE
	@LIVE="$(LIVE)" $(STEP) live

live-rescue: ## steps that end with a valid call, without and with rescue, at LIVE
	@LIVE="$(LIVE)" $(STEP) live_rescue

load: ## what a hop through the gateway costs: the tables of docs/measured/performance.md
	@BASE="$(BASE)" $(STEP) load

durable: ## agents on a real Temporal server, with workers and the server killed
	@$(STEP) durable

reports: ## reports against the schemas of their formats and against OpenRouter's validator, all fetched
	@$(STEP) reports

together: ## programs of Toolmend and ten other modules, each at its newest version, fetched
	@$(STEP) together

hostile: ## what hostile input costs: the table of docs/measured/hostile-input.md
	@$(STEP) hostile

simulate: ## SEEDS (1000) gateways on a network in memory, or the one SEED, with clients and providers that misbehave
	@SEEDS="$(SEEDS)" SEED="$(SEED)" $(STEP) simulate

simulate-faults: ## plant faults, and show the seed of the simulation that finds each
	@SEEDS="$(SEEDS)" $(STEP) simulate_faults

release: ## pack VERSION of every module, and install it as a user would
	@.ci/release "$(VERSION)"

packages: ## build the packages of VERSION, and install each in a clean environment
	@.ci/packages "$(VERSION)"

deploy: ## verify the systemd unit, and test three instances behind nginx
	@.ci/deploy

metrics: ## alert rules, dashboard and docs/gateway/metrics.md with Debian's Prometheus on a running gateway
	@$(STEP) metrics

tidy: ## fail where go mod tidy would change something
	@$(STEP) tidy

.PHONY: help build check fmt format vet lint test race examples fuzz-smoke fuzz soak bench heavy lib inproc inproc-bench agents mcp page live live-rescue load durable reports together hostile simulate simulate-faults release packages deploy metrics site site-test tidy
