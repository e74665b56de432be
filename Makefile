# The commands that people and CI type. Everything is built by CMake (CMakePresets.json); this only strings the steps
# together: set-up, configure, build, run.
#   SIM_ONLY=1     core, simulator and reports only: no LibTorch
#   PROGRAMS_ONLY=1   installs nothing that only tests, benchmarks and checks need
#   SETUP=0        installs nothing: builds with what is there
#   OFFLINE=DIR    without a network: installs from a folder that `make download DIR=..` has filled
#   WERROR=ON      warnings are errors (as in the presets, and in CI)
#   CMAKE_ARGS=..  goes to cmake
.DEFAULT_GOAL := build
# As scripts/common.sh, CMakeLists.txt and pyproject.toml say it.
SYSTEM := $(shell uname -s 2>/dev/null || echo this system)
ifneq ($(SYSTEM),Linux)
$(error $(SYSTEM) is not supported. Tandem works on Linux (x86-64, aarch64): a Linux machine, a container, or WSL2 on Windows)
endif
.PHONY: setup download configure build simulator programs install uninstall test test-names mutants soak golden nightly demo \
  bench lint format fuzz asan tsan wheel site clean help

SETUP ?= 1
OFFLINE ?=
SIM_ONLY ?= 0
PROGRAMS_ONLY ?= 0
WERROR ?= OFF
CMAKE_ARGS ?=
JOBS ?= $(shell nproc)
TEST_JOBS ?= 2
FUZZ_INPUTS ?= 100000
LINT ?= changed
DEMO_SCENARIO ?= scenarios/demo.yaml
PREFIX ?= $(HOME)/.local
MUTANTS ?=

# One cache serves all clones and build folders: paths are hashed relative to the checkout.
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_SLOPPINESS ?= pch_defines,time_macros
export SIM_ONLY PROGRAMS_ONLY OFFLINE

# The suites' lines are ctest's; what each test did is in its log.
REPORT := scripts/test_report.py
CTEST_FLAGS := --output-on-failure --no-tests=error --parallel $(TEST_JOBS)

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## make setup   installs what is missing (apt-packages.txt, requirements.txt) and prepares the corpus;
##              OFFLINE=DIR: without a network, from what `make download` has put into DIR
setup:
	@test "$(SETUP)" = 0 || scripts/setup.sh

## make download DIR=..   fills the folder DIR with all that `make setup OFFLINE=DIR` installs on a machine like this one
download:
	@test -n "$(DIR)" || { echo "tandem: make download needs DIR=FOLDER" >&2; exit 2; }
	@scripts/download.sh "$(DIR)"

configure: setup
	@runtime=OFF; cuda=OFF; packages=.venv/lib/python3*/site-packages; \
	if [ "$(SIM_ONLY)" != 1 ] && ls $$packages/torch/lib/libtorch_cpu.so >/dev/null 2>&1; then runtime=ON; fi; \
	if [ $$runtime = ON ] && ls $$packages/nvidia/cu13/bin/nvcc >/dev/null 2>&1; then cuda=ON; fi; \
	tests=ON; if [ "$(PROGRAMS_ONLY)" = 1 ] && [ ! -e /usr/include/gtest/gtest.h ]; then tests=OFF; fi; \
	cmake --preset release -DTANDEM_WITH_RUNTIME=$$runtime -DTANDEM_WITH_CUDA=$$cuda -DTANDEM_WITH_TESTS=$$tests \
	  -DTANDEM_WARNINGS_AS_ERRORS=$(WERROR) $(CMAKE_ARGS)

## make build   the above, then all that this machine can build, into build/
build: configure
	cmake --build build --parallel $(JOBS)

## make simulator   the command and its simulator alone: no LibTorch, no tests; the quickest way to a first answer
simulator:
	$(MAKE) configure SIM_ONLY=1 PROGRAMS_ONLY=1
	cmake --build build --parallel $(JOBS) --target tandem_programs

# The command with all that it starts, on a GPU, too, where this machine can build that. No tests, no benchmarks.
programs:
	$(MAKE) configure PROGRAMS_ONLY=1
	cmake --build build --parallel $(JOBS) --target tandem_programs

## make install PREFIX=~/.local   the command with all that it needs, which then runs without this checkout;
##              SIM_ONLY=1: without LibTorch
install: programs
	cmake --install build --prefix $(PREFIX)
	@case ":$$PATH:" in *:"$(PREFIX)"/bin:*) ;; *) echo "put it on the PATH:  export PATH=$(PREFIX)/bin:\$$PATH" ;; esac

## make uninstall PREFIX=~/.local   removes what that has put there, and says what it was
uninstall:
	@scripts/uninstall.sh $(PREFIX)

## make test    the above (build), then every test, each with its time, and the ten slowest
test: build
	@status=0; ctest --test-dir build $(CTEST_FLAGS) || status=1; $(REPORT) build --all || status=1; exit $$status

## make test-names   the names of all tests that `make test` runs
test-names:
	@$(REPORT) build --names

## make soak      100,000 live steps grow by no more than 1 MB after the first 1,000 (minutes; not in CI)
soak: programs
	scripts/soak.py

## make golden    the golden runs of a build without optimisation: the same logs (`make test` runs them with -O3, `make asan`
##                with -O1)
golden: setup
	cmake --preset dev -DTANDEM_WITH_RUNTIME=OFF $(CMAKE_ARGS)
	cmake --build --preset dev --parallel $(JOBS) --target tandem-simulate
	TANDEM_BUILD=$(CURDIR)/build-dev TANDEM_SOURCE=$(CURDIR) .venv/bin/python tests/scripts/golden_logs.py

## make nightly   what takes too long for every change: 10,000 random graphs, 10,000 live runs with faults, every
##                allocation of three steps refused, every call on files failing in turn, 200 kills, 1,000 interrupts,
##                1,000 steps of each policy to the bits of resident and with random delays, a million fuzzed inputs,
##                golden runs without optimisation, all published rows and small plans, the soak, every command that the
##                documentation shows with its output, every test under the address sanitizer
nightly: build soak golden
	TANDEM_EVERY_FAULT=1 build/bin/test_file_faults --each_alone=1800
	test ! -x build/bin/test_live_faults || TANDEM_EVERY_FAULT=1 build/bin/test_live_faults --each_alone=1800
	TANDEM_EVERY_FAULT=1 TANDEM_BUILD=build TANDEM_SOURCE=. .venv/bin/python tests/scripts/faults.py
	test ! -x build/bin/tandem-train || TANDEM_KILLS=200 TANDEM_INTERRUPTS=1000 TANDEM_BUILD=build .venv/bin/python tests/scripts/kills.py
	TANDEM_RANDOM_GRAPHS=10000 build/bin/test_core --gtest_filter='RandomPolicy.*'
	TANDEM_STRESS_STEPS=1000 build/bin/test_executors --gtest_filter='*StressTest.*'
	TANDEM_NIGHTLY=1 ctest --test-dir build $(CTEST_FLAGS) -R '^(scripts.systems|plan.SmallPlans)'
	scripts/nightly_faults.sh
	.venv/bin/python scripts/check_docs.py --slow
	test ! -x build/bin/tandem-train || scripts/parity.py
	$(MAKE) fuzz FUZZ_INPUTS=1000000
	cmake --preset asan-ubsan -DTANDEM_EVERY_TEST=ON && cmake --build --preset asan-ubsan --parallel $(JOBS)
	ctest --preset asan-ubsan $(CTEST_FLAGS); status=$$?; cmake --preset asan-ubsan -DTANDEM_EVERY_TEST=OFF; exit $$status

## make mutants   plants bugs one at a time, and expects tests to find each (an hour; MUTANTS=NAME: some)
mutants: setup
	scripts/mutants.py $(MUTANTS)

.PHONY: demo-programs
demo-programs:
	$(MAKE) configure PROGRAMS_ONLY=1
	cmake --build build --parallel $(JOBS) --target tandem tandem-simulate tandem-train tandem-calibrate

# Measured once and kept, as a machine's figures are: delete it to measure again.
build/demo/machine.yaml: | demo-programs
	@mkdir -p build/demo
	build/bin/tandem calibrate --device cpu --quick --output $@

## make demo    calibrates this machine (once, a minute), simulates a scenario, trains it for real on the CPU, and
##              prints predicted beside measured
demo: demo-programs build/demo/machine.yaml
	build/bin/tandem compare $(DEMO_SCENARIO) --set machine=build/demo/machine.yaml \
	  --trace build/demo/trace.json --report build/demo/report.html --json build/demo/result.json
	@echo
	@echo "report   $(CURDIR)/build/demo/report.html   (open it in a browser; it needs no network)"
	@echo "trace    $(CURDIR)/build/demo/trace.json    (open it at ui.perfetto.dev, or in chrome://tracing)"
	@echo "result   $(CURDIR)/build/demo/result.json"

## make bench   runs the benchmarks; their figures go to build/bench/
bench: build
	@mkdir -p build/bench
	@set -e; for program in build/bin/bench_*; do \
	  $$program --benchmark_out=build/bench/$$(basename $$program).json --benchmark_out_format=json; done

## make lint    clang-format and clang-tidy on the files that differ from the last commit; LINT=all: on every file
lint: setup
	scripts/lint.sh $(LINT)

## make format  rewrites the sources with clang-format
format: setup
	scripts/lint.sh format

## make asan    every test that needs no LibTorch, under the address and undefined sanitizers
asan: setup
	cmake --preset asan-ubsan $(CMAKE_ARGS)
	cmake --build --preset asan-ubsan --parallel $(JOBS)
	@status=0; ctest --preset asan-ubsan $(CTEST_FLAGS) || status=1; $(REPORT) build-asan-ubsan --all || status=1; \
	exit $$status

## make tsan    what has threads, under the thread sanitizer (LibTorch is not instrumented: executors run bodies of their own)
tsan: setup
	cmake --preset tsan $(CMAKE_ARGS)
	cmake --build --preset tsan --parallel $(JOBS) --target test_executors
	@status=0; ctest --preset tsan $(CTEST_FLAGS) -R '^executors\.' || status=1; $(REPORT) build-tsan || status=1; \
	exit $$status

## make fuzz    FUZZ_INPUTS (100000) mutated scenarios, profiles, logs, measurements and checkpoint files under the address and undefined sanitizers
fuzz: setup
	cmake --preset asan-ubsan $(CMAKE_ARGS)
	cmake --build --preset asan-ubsan --parallel $(JOBS) --target test_core test_report test_checkpoint
	TANDEM_FUZZ_COUNT=$(FUZZ_INPUTS) ctest --preset asan-ubsan $(CTEST_FLAGS) -R '[Ff]uzz'

## make wheel   a wheel of the simulator that needs no package of the distribution, checked, in build-wheel/dist
wheel:
	$(MAKE) setup SIM_ONLY=1 PROGRAMS_ONLY=1
	JOBS=$(JOBS) scripts/wheel.sh

## make site    the documentation as a site, in build/site (requirements-docs.txt, into build/site-venv)
site:
	test -x build/site-venv/bin/mkdocs || { python3 -m venv build/site-venv && build/site-venv/bin/pip install -q -r requirements-docs.txt; }
	build/site-venv/bin/mkdocs build --strict

## make clean   removes the build folders (not .venv)
clean:
	rm -rf build build-*
