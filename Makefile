# make build: the command build/bin/partita     make test: everything that can fail     make demo: see it work
# Every target first installs what this machine lacks (tools/setup); nothing when all is there.
.SILENT:
.PHONY: setup build test demo bench tables lint asan tsan clean

TREE := build/full
PRODUCT := partita partita_run_shared partita_python
# A terminal shows how far it is.
QUIET := $(shell [ -t 2 ] || echo --quiet)
JOBS := $(shell nproc)
TSAN := run_threads run_loop run_memory_pool run_check run_host
PYTHON := $(CURDIR)/.venv/bin/python
export PYTHONPATH := $(CURDIR)/python
export PARTITA_LIBRARY_DIR := $(CURDIR)/$(TREE)/lib
export HF_HUB_OFFLINE := 1

setup:
	tools/setup

build: setup
	[ -e $(TREE)/build.ninja ] || cmake --preset full --log-level=WARNING >/dev/null
	cmake --build $(TREE) --parallel $(JOBS) --target $(PRODUCT) -- $(QUIET)
	mkdir -p build/bin && ln -sfn ../full/bin/partita build/bin/partita

# Both runners always run, side by side; the last line is pytest's count, and one failure anywhere fails the target.
test: build
	cmake --build $(TREE) --parallel $(JOBS) -- $(QUIET)
	code=0; \
	timeout 2400 $(PYTHON) -m pytest -q tests/runs >$(TREE)/pytest.log 2>&1 & pytest=$$!; \
	timeout 2400 ctest --test-dir $(TREE) --label-exclude perf --output-on-failure --timeout 300 --parallel $(JOBS) --no-tests=error || code=1; \
	wait $$pytest || code=1; \
	cat $(TREE)/pytest.log; \
	exit $$code

demo: build
	$(PYTHON) examples/demo.py

# Speed and memory are measured here, one thing at a time, and never fail `make test`.
bench: build
	cmake --build $(TREE) --parallel $(JOBS) -- $(QUIET)
	ctest --test-dir $(TREE) --label-regex perf --verbose --no-tests=error
	for script in bench/executor.py bench/pipeline.py bench/reshard.py bench/capture.py bench/profiler.py; do $(PYTHON) $$script || exit 1; done

# The tables of docs/evidence that come from whole runs, made anew; each fails where a row is not as it should be.
tables: build
	$(PYTHON) tests/parity/verify_table.py build/bin/partita --write
	$(PYTHON) tests/parity/schedule_table.py build/bin/partita --write
	$(PYTHON) tests/parity/families_table.py build/bin/partita --write
	cmake --build $(TREE) --parallel $(JOBS) --target plan_table -- $(QUIET)
	$(PYTHON) tests/parity/recipe_table.py $(TREE) --write
	$(PYTHON) tests/parity/capture_table.py --write docs/evidence/capture.md
	$(PYTHON) tests/parity/capture_twice.py
	$(PYTHON) tests/parity/end_to_end_table.py --write
	$(PYTHON) tests/parity/memory_table.py --write docs/evidence/memory.md
	$(PYTHON) tests/parity/profile_cases.py --write docs/evidence/profile.md

# What .clang-format and .clang-tidy say; some minutes.
lint:
	tools/setup lint
	tools/lint

# Everything that needs no torch, built and tested under the sanitizers, each in its own tree; then broken files.
asan: setup
	[ -e build/asan/build.ninja ] || cmake --preset asan --log-level=WARNING >/dev/null
	cmake --build build/asan --parallel $(JOBS) -- --quiet
	ctest --test-dir build/asan --label-exclude perf --output-on-failure --timeout 600 --parallel $(JOBS) --no-tests=error
	for kind in model other; do python3 bench/broken_files.py build/asan/bin/partita --count 500 --kind $$kind || exit 1; done

# Threads: rank threads and their communicator, walking a Program on them, and what else of the core uses threads.
tsan: setup
	[ -e build/tsan/build.ninja ] || cmake --preset tsan --log-level=WARNING >/dev/null
	cmake --build build/tsan --parallel $(JOBS) --target $(TSAN:%=test_unit_%_test) test_property_schedule_deadlock_test -- --quiet
	ctest --test-dir build/tsan --tests-regex 'unit/($(subst $() ,|,$(TSAN)))_test|property/schedule_deadlock' --output-on-failure --timeout 600 --no-tests=error

clean:
	rm -rf build
