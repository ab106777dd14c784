# Every target makes or updates .venv by itself; a second run starts in seconds.
PYTHON ?= python3.11
BIN := .venv/bin
# The interpreter under either of its usual names.
FOUND := $(shell command -v $(PYTHON) || command -v python3)

.PHONY: help demo digits browser test test-fast check bench wheel clean

help:
	@echo "make demo       a sentence encoder with a table 25 times smaller, and what it cost"
	@echo "make digits     quantizers on real digits: distortion, rate, codes in use"
	@echo "make test       all tests"
	@echo "make test-fast  all tests but the slow ones"
	@echo "make check      ruff, formatting, mypy --strict"
	@echo "make bench      ratios against peers, written to bench.json"
	@echo "make wheel      build the wheel into dist/"

$(BIN)/python:
	$(FOUND) -m venv .venv

# torch first and by itself: its pinned CPU build must be there before anything asks for torch.
.venv/.base: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[fast,dev]'
	@touch $@

.venv/.bench: .venv/.base
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[bench]'
	@touch $@

demo: .venv/.base
	$(BIN)/python examples/sentence_encoder.py demo/small-minilm

digits: .venv/.base
	$(BIN)/python examples/digits.py

# What opens pages in tests. Without it, and without the right to install it, they are skipped.
browser:
	@command -v chromium chromium-browser google-chrome >/dev/null 2>&1 \
		&& command -v chromedriver >/dev/null 2>&1 \
		|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 \
			&& timeout 300 apt-get install -y -qq -o Acquire::http::Timeout=20 \
				chromium chromium-driver >/dev/null 2>&1; } \
		|| echo "no Chromium here: tests that open pages in a browser will be skipped"

test: .venv/.base browser
	$(BIN)/python -m pytest -n 2

test-fast: .venv/.base
	$(BIN)/python -m pytest -n 2 -m "not slow"

check: .venv/.base
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/.bench
	$(BIN)/python -m benchmarks --output bench.json

wheel: .venv/.base
	$(BIN)/python -m build --wheel

clean:
	rm -rf .venv dist build demo bench.json .mypy_cache .ruff_cache .pytest_cache .hypothesis
