# The front door. Everything here is short; the work is in tools/ and CMakeLists.txt.
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup build demo test test-all proofs asan tsan fuzz bench fmt lint docs reference golden-update clean
MAKEFLAGS += --no-print-directory

PRESET ?= dev
FUZZ_SECONDS ?= 60
# Random programs per law under the sanitizers, which are slow, and the suites that run there.
SANITIZED_LAW_PROGRAMS ?= 20
SANITIZED ?= unit golden laws example
export FUZZ_SECONDS

# $(call link,PRESET): build/starfold is the command of that preset.
link = if [ -x build/$(1)/starfold ]; then ln -sfn $(1)/starfold build/starfold; fi

help:
	@echo 'make demo            build, then run a study of three hospitals, with a report, and compare with pooled data'
	@echo 'make test            build and run all tests; says how to rerun what failed'
	@echo 'make test-all        make test, and what needs further installs: make proofs'
	@echo 'make proofs          install Coq and check the theorems in proofs/ (PROOFS=--no-coqchk: the short form)'
	@echo 'make build           build/starfold, optimized with assertions (PRESET=release: without)'
	@echo 'make fmt             lay out all C++ with clang-format'
	@echo 'make lint            clang-tidy'
	@echo 'make asan, make tsan the C++ tests under sanitizers (SANITIZED="golden laws": those alone)'
	@echo 'make fuzz            every fuzzer for FUZZ_SECONDS (60), two at a time'
	@echo 'make bench           Starfold beside its peers and limits (BENCH='--only NAME --json OUT')'
	@echo 'make docs            rewrite docs/operations.md and docs/library.md from their sources'
	@echo 'make reference       make the figures of R in tests/reference again (needs R, see there)'
	@echo 'make golden-update   rewrite the expectations inside tests/golden'
	@echo 'make clean           remove build/'

setup:
	@tools/setup

# What a user needs: the command, without tests and what they need.
build:
	@tools/setup user
	@tools/build $(PRESET) command
	@$(call link,$(PRESET))

demo: build
	@tools/demo

test: setup
	@tools/build dev
	@$(call link,dev)
	@tools/test dev

# What needs further installs. Each part is a command of its own.
test-all: test proofs

proofs:
	@tools/setup proofs
	@tools/proofs $(PROOFS)

asan: setup
	@tools/build sanitize $(SANITIZED)
	@STARFOLD_LAW_PROGRAMS=$${STARFOLD_LAW_PROGRAMS:-$(SANITIZED_LAW_PROGRAMS)} tools/test sanitize $(SANITIZED)

tsan: setup
	@tools/build tsan $(SANITIZED)
	@STARFOLD_LAW_PROGRAMS=$${STARFOLD_LAW_PROGRAMS:-$(SANITIZED_LAW_PROGRAMS)} tools/test tsan $(SANITIZED)

fuzz: setup
	@tools/build sanitize fuzzers
	@tools/fuzz

bench: setup
	@bench/setup
	@tools/build release
	@bench/run $(BENCH)

fmt: setup
	@tools/format

lint: setup
	@tools/build dev
	@tools/lint

docs: build
	@build/starfold ops --markdown >build/operations.md
	@cp build/operations.md docs/operations.md
	@build/starfold lib --markdown >build/library.md
	@cp build/library.md docs/library.md
	@echo 'docs: wrote docs/operations.md and docs/library.md'

# R and its packages are named in tests/reference/README.md.
reference:
	@Rscript tests/reference/glm.R
	@Rscript tests/reference/library.R
	@Rscript tests/reference/formulas.R
	@Rscript tests/reference/offsets.R
	@Rscript tests/reference/judging.R
	@Rscript tests/reference/clients.R

golden-update: setup
	@tools/build dev
	@STARFOLD_UPDATE_GOLDEN=1 build/dev/golden_tests --gtest_brief=1

clean:
	@rm -rf build
