# tack: build, test, lint and show. `make help` lists the targets.
#
# Everything that is made goes into .venv and build. What decides whether a step runs again is the
# contents of the files that it reads, not their time stamps.

PYTHON ?= python3

VENV     := .venv
DIST     := build/dist
DEMO_ENV := build/demo-env
PICTURES := build/demo
GALLERY  := build/gallery
DEMO_CACHE := build/demo-cache
DEMO_LLVM := build/demo-llvm

# Programs of the environment first: cmake, ninja and tack-aot come from there.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

PIP      := $(VENV)/bin/python -m pip --quiet
DEMO_PIP := $(DEMO_ENV)/bin/python -m pip --quiet
DEMO_JIT := PATH=$(CURDIR)/$(DEMO_ENV)/bin PYTHONPATH=$(DEMO_LLVM) TACK_JIT=allow TACK_CACHE_DIR=$(DEMO_CACHE) \
	$(DEMO_ENV)/bin/python examples/imagekit/jit.py

PYTEST_ARGS ?= --numprocesses auto
MYPY_ARGS   := --strict --config-file $(CURDIR)/pyproject.toml
PROGRAMS    := examples/imagekit/src/imagekit $(wildcard examples/imagekit/*.py .ci/*.py)
# A group of its own: mypy takes one demo.py at a time.
PROGRAMS_2  := examples/gallery/src/gallery $(wildcard examples/gallery/*.py)
C_FILES     := $(wildcard bindings/*.cpp bindings/*.h templates/c/*.h benchmarks/*.c tests/*.c \
	tests/gpu_headers/*/*.h tests/gpu_headers/*/*/*.h templates/hip/include/*/*.h)

# What looks at the installed tree runs elsewhere: in the checkout it would find tack without
# tack.aot, which is a folder of its own there.
FROM_BUILD := cd build && $(CURDIR)/$(VENV)/bin

# The digests of all files below some folders, rewritten only when one of them differs.
digests = mkdir -p $(@D) && find $(1) -type f -not -name '*.pyc' -not -path '*/build/*' -print0 \
	| LC_ALL=C sort -z | xargs -0 sha256sum >$@.new \
	&& if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

.DELETE_ON_ERROR:
.PHONY: help devices demo gallery test lint ruff mypy imports clang-format bench clean FORCE
FORCE:

help:
	@echo 'make demo     build tack and examples/imagekit into wheels and run them without a compiler'
	@echo 'make gallery  build examples/gallery into a wheel and run its programs beside NumPy'
	@echo 'make test     run all tests against an installed tack'
	@echo 'make devices  install compilers for GPUs, without which make test skips what needs them,'
	@echo '              and make demo builds for CPUs and Metal'
	@echo 'make lint     run ruff, mypy, import-linter and clang-format'
	@echo 'make bench    time calls, starts and code generation (CPU)'
	@echo 'make clean    remove .venv and build'

# --- the environment that builds and tests -------------------------------------------------------

$(VENV)/requirements.txt: pyproject.toml .ci/requirements.py
	@mkdir -p build
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python .ci/requirements.py pyproject.toml >build/requirements.txt
	cmp -s build/requirements.txt $@ || $(PIP) install --upgrade pip -r build/requirements.txt
	mv build/requirements.txt $@

build/tack.sha256: FORCE
	@$(call digests,tack aot templates bindings pyproject.toml CMakeLists.txt README.md LICENSE)

# An installed tack would take part in building the next one (scikit-build-core imports what offers
# CMake modules), and a broken one would keep itself alive.
build/tack.stamp: build/tack.sha256 $(VENV)/requirements.txt
	rm -f $(DIST)/tack_aot-*.whl $(VENV)/tack.stamp
	$(PIP) uninstall --yes tack-aot
	$(PIP) wheel --no-deps --no-build-isolation --wheel-dir $(DIST) .
	@touch $@

# tack as its users have it, with what building a package, the tests and the linters need.
$(VENV)/tack.stamp: build/tack.stamp .ci/constraints.txt
	$(PIP) install --force-reinstall --no-deps $(DIST)/tack_aot-*.whl
	$(PIP) install --constraint .ci/constraints.txt "$$(echo $(DIST)/tack_aot-*.whl)[build,test,lint]"
	@touch $@

# Compilers for GPUs, which the tests of their text and images for GPUs need: some 900 MB.
devices: $(VENV)/tack.stamp
	$(PIP) install "$$(echo $(DIST)/tack_aot-*.whl)[devices]"

$(VENV)/bench.stamp: $(VENV)/tack.stamp
	$(PIP) install "$$(echo $(DIST)/tack_aot-*.whl)[bench]"
	@touch $@

# --- the example, in an environment that cannot compile ------------------------------------------

build/imagekit.sha256: FORCE
	@$(call digests,examples/imagekit)

# The backends that can be built for here: those whose compilers are installed.
build/imagekit.targets: $(VENV)/tack.stamp FORCE
	@$(VENV)/bin/tack-aot doctor --backends >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

build/imagekit.stamp: build/imagekit.sha256 build/imagekit.targets $(VENV)/tack.stamp
	@echo "imagekit is built for: $$(cat build/imagekit.targets) (make devices installs compilers for GPUs)"
	rm -f $(DIST)/imagekit-*.whl
	$(PIP) wheel --no-deps --no-build-isolation --wheel-dir $(DIST) \
		-Ccmake.define.IMAGEKIT_TARGETS="$$(tr ' ' ';' <build/imagekit.targets)" examples/imagekit
	@touch $@

# scikit-image is there for its photographs only: it is never imported and its requirements stay out.
$(DEMO_ENV)/peers.stamp:
	$(PYTHON) -m venv --clear $(DEMO_ENV)
	$(DEMO_PIP) install numpy scipy pillow
	$(DEMO_PIP) install --no-deps scikit-image
	@touch $@

$(DEMO_ENV)/wheels.stamp: build/tack.stamp build/imagekit.stamp $(DEMO_ENV)/peers.stamp
	$(DEMO_PIP) install --force-reinstall --no-deps $(DIST)/tack_aot-*.whl $(DIST)/imagekit-*.whl
	@touch $@

# What the extra `jit` installs lies beside the environment: only the last two steps of the demo, a
# call that nobody prebuilt and a second process that makes it again, may see it.
$(DEMO_LLVM)/stamp: $(DEMO_ENV)/peers.stamp
	$(DEMO_PIP) install --no-deps --upgrade --target $(DEMO_LLVM) llvmlite platformdirs
	@touch $@

# One thread for NumPy too, since kernels run on the calling thread.
demo: $(DEMO_ENV)/wheels.stamp $(DEMO_LLVM)/stamp
	PATH=$(CURDIR)/$(DEMO_ENV)/bin OPENBLAS_NUM_THREADS=1 \
		$(DEMO_ENV)/bin/python examples/imagekit/demo.py \
		--no-compiler --output $(PICTURES)
	rm -rf $(DEMO_CACHE)
	$(DEMO_JIT) --expect compiled
	$(DEMO_JIT) --expect cached

# --- the gallery, in the same environment --------------------------------------------------------

build/gallery.sha256: FORCE
	@$(call digests,examples/gallery)

build/gallery.stamp: build/gallery.sha256 $(VENV)/tack.stamp
	rm -f $(DIST)/gallery-*.whl
	$(PIP) wheel --no-deps --no-build-isolation --wheel-dir $(DIST) examples/gallery
	@touch $@

$(DEMO_ENV)/gallery.stamp: build/gallery.stamp $(DEMO_ENV)/wheels.stamp
	$(DEMO_PIP) install --force-reinstall --no-deps $(DIST)/gallery-*.whl
	@touch $@

gallery: $(DEMO_ENV)/gallery.stamp
	PATH=$(CURDIR)/$(DEMO_ENV)/bin OPENBLAS_NUM_THREADS=1 TACK_JIT=forbid \
		$(DEMO_ENV)/bin/python examples/gallery/demo.py --output $(GALLERY)

# --- checks --------------------------------------------------------------------------------------

test: $(VENV)/tack.stamp
	$(FROM_BUILD)/pytest --rootdir $(CURDIR) --config-file $(CURDIR)/pyproject.toml \
		$(PYTEST_ARGS) $(or $(TESTS),$(CURDIR)/tests)
	@$(MAKE) --no-print-directory imports

lint: ruff mypy imports clang-format

ruff: $(VENV)/tack.stamp
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check

mypy: $(VENV)/tack.stamp
	$(FROM_BUILD)/mypy $(MYPY_ARGS) --package tack
	$(FROM_BUILD)/mypy $(MYPY_ARGS) $(addprefix $(CURDIR)/,$(PROGRAMS))
	$(FROM_BUILD)/mypy $(MYPY_ARGS) $(addprefix $(CURDIR)/,$(PROGRAMS_2))

imports: $(VENV)/tack.stamp
	$(FROM_BUILD)/import-linter lint --no-logo $(CURDIR)/pyproject.toml

clang-format: $(VENV)/tack.stamp
	$(VENV)/bin/clang-format --dry-run -Werror $(C_FILES)

bench: $(VENV)/bench.stamp
	mkdir -p build/bench
	set -e; for name in $(basename $(notdir $(wildcard benchmarks/bench_*.py))); do \
		(set -x; $(FROM_BUILD)/python $(CURDIR)/benchmarks/$$name.py --json bench/$$name.json \
			$(BENCH_ARGS)); \
	done

clean:
	rm -rf $(VENV) build
