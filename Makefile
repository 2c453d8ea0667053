# make build: the command build/bin/partita     make test: everything that can fail     make demo: see it work
# Every target first installs what this machine lacks (tools/setup); nothing when all is there.
.SILENT:
.PHONY: setup build test demo bench clean

TREE := build/full
JOBS := $(shell nproc)
PYTHON := $(CURDIR)/.venv/bin/python
export PYTHONPATH := $(CURDIR)/python
export PARTITA_LIBRARY_DIR := $(CURDIR)/$(TREE)/lib
export HF_HUB_OFFLINE := 1

setup:
	tools/setup

build: setup
	[ -e $(TREE)/build.ninja ] || cmake --preset full --log-level=WARNING >/dev/null
	cmake --build $(TREE) --parallel $(JOBS) -- --quiet
	mkdir -p build/bin && ln -sfn ../full/bin/partita build/bin/partita

# Both runners always run; the last line is pytest's count, and one failure anywhere fails the target.
test: build
	code=0; \
	timeout 1200 ctest --test-dir $(TREE) --label-exclude perf --output-on-failure --timeout 300 --parallel $(JOBS) --no-tests=error || code=1; \
	timeout 1200 $(PYTHON) -m pytest -q tests/runs || code=1; \
	exit $$code

demo: build
	$(PYTHON) examples/demo.py

# Speed and memory are measured here, one thing at a time, and never fail `make test`.
bench: build
	ctest --test-dir $(TREE) --label-regex perf --verbose --no-tests=error
	for script in bench/executor.py bench/reshard.py; do $(PYTHON) $$script || exit 1; done

clean:
	rm -rf build
