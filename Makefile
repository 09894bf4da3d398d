# A thin cover over Meson and Ninja. `make help` lists what there is.
SHELL := /bin/bash
BUILD ?= build
PREFIX ?= /usr/local
FUZZ_TIME ?= 60
JOBS ?= $(shell nproc)
export JOBS
PYTHON := /usr/bin/python3

.DEFAULT_GOAL := all
.PHONY: all demo test lint asan tsan fuzz bench soak install help clean

all: ## build sonde into build/
	@tools/setup build
	@tools/build $(BUILD)

demo: all ## show what sonde does, on a small program
	@tools/demo $(BUILD)

test: ## build and run every test and check
	@tools/setup test
	@$(PYTHON) tools/test --build $(BUILD)

lint: ## run the checks of tools/check alone
	@$(PYTHON) tools/test --build $(BUILD) --only checks

asan: ## unit tests, corpora and integration tests under AddressSanitizer and UBSan
	@tools/build build-asan -Db_sanitize=address,undefined
	@$(PYTHON) tools/test --build build-asan --only unit,integration

tsan: ## unit tests under ThreadSanitizer
	@tools/build build-tsan -Db_sanitize=thread
	@$(PYTHON) tools/test --build build-tsan --only unit

fuzz: ## run each fuzz target for FUZZ_TIME seconds (60)
	@tools/fuzz $(FUZZ_TIME)

soak: all ## long trials: kills at any instant, and the tests of Python's own library
	@tools/soak --build $(BUILD)
	@tools/soak_attach --build $(BUILD)
	@tools/soak_python --build $(BUILD)
	@SONDE_KILLS=200 SONDE_BUILD=$(BUILD) $(PYTHON) -m pytest -q --no-header -p no:cacheprovider \
		tests/integration/test_serve_faults.py -k killed
	@SONDE_AWAY=60 SONDE_BUILD=$(BUILD) $(PYTHON) -m pytest -q --no-header -p no:cacheprovider \
		tests/integration/test_stores.py -k away
	@bench/jobs --build $(BUILD) --minutes 10

bench: all ## measure every figure beside the peers'
	@bench/all $(BUILD)

install: all ## install under PREFIX (/usr/local); DESTDIR is honoured
	@meson configure $(BUILD) -Dprefix=$(PREFIX) >/dev/null
	@meson install -C $(BUILD) --quiet

help: ## this list
	@sed -n 's/^\([a-z]*\):[^#]*## /\1\t/p' Makefile | while IFS=$$'\t' read -r name what; do \
		printf '  make %-8s %s\n' "$$name" "$$what"; done

clean: ## remove what was built
	@rm -rf build build-asan build-tsan build-fuzz
