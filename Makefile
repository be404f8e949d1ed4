# Two commands matter: make demo, make test. The rest is what they are made of.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
ARCHIVE := $(VENV)/share/millstream/spark.jsa

export POLARS_MAX_THREADS ?= 1

.PHONY: help setup java lint types test fuzz soak bench bench-smoke bench-peers demo cluster cluster-stop clean

help:
	@echo "make demo     open auctions on Spark, for a minute   make test          set-up, lint, types, tests"
	@echo "make setup    create .venv                           make bench         measure, write JSON and PNG"
	@echo "make cluster  a Spark cluster on this machine        make cluster-stop  stop it"
	@echo "make soak     random scripts, restarts, kills -9     make bench-peers   other engines on the same files"
	@echo "make fuzz     properties on many more examples       make bench-smoke   every benchmark on tiny data"

setup: $(STAMP) java $(ARCHIVE)

$(STAMP): pyproject.toml bench/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Millstream needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make setup PYTHON=python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing Millstream and its tools into $(VENV) (a minute or two)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' -e ./bench
	@$(BIN)/python -m compileall -q src bench/millstream_bench/millstream_bench  # workers of Spark start faster
	@touch $(STAMP)

java:
	@bash scripts/check_java.sh

$(ARCHIVE): $(STAMP) | java
	@echo "preparing Spark (half a minute, once)"
	@$(BIN)/millstream prepare > /dev/null || echo "Spark will take some seconds longer to start"

lint: $(STAMP)
	@$(BIN)/ruff check src tests bench examples
	@$(BIN)/ruff format --check src tests bench examples
	@$(BIN)/lint-imports --no-cache > .lint.log || { cat .lint.log; exit 1; }; rm -f .lint.log

types: $(STAMP)
	@$(BIN)/mypy

TURN ?= $(shell git rev-parse --short HEAD 2>/dev/null || echo 1)

test: setup lint types  # TURN: which of the cases that take turns; those of a commit are always the same
	@MILLSTREAM_TURN=$(TURN) MILLSTREAM_SPARK_EXAMPLES=1 $(BIN)/python -m pytest -n 2 --dist loadgroup src bench/millstream_bench tests  # groups run first: they take longest

fuzz: setup  # every property on forty times as many examples, never the same ones
	@MILLSTREAM_TRIES=5 $(BIN)/python -m pytest -n 2 --timeout 7200 tests --ignore tests/spark

soak: setup
	@$(BIN)/python -m tests.scripts.on_spark 200
	@$(BIN)/python -m tests.scripts.on_spark 40 1 prods
	@$(BIN)/python -m tests.scripts.on_spark 60 1 feedback
	@$(BIN)/millstream test tests/transcripts --on spark --shards 2 --restart
	@$(BIN)/millstream test tests/transcripts --on spark --shards 2 --cut random:4
	@$(BIN)/millstream soak --kills 20
	@$(BIN)/millstream soak --what mixture --kills 40
	@$(BIN)/millstream soak --what damage
	@$(BIN)/millstream soak --what memory

bench-smoke: setup  # every benchmark on tiny data; `make test` runs some at each commit
	@$(BIN)/python -m pytest -n 2 --dist loadgroup tests/bench

bench: setup
	@$(BIN)/millstream bench engine --out bench/results
	@$(BIN)/millstream bench core --out bench/results
	@$(BIN)/millstream bench w1 w2 --out bench/results
	@$(BIN)/millstream bench latency --out bench/results
	@$(BIN)/millstream bench idle --out bench/results
	@$(BIN)/millstream bench state --out bench/results
	@$(BIN)/millstream bench joins --out bench/results
	@$(BIN)/millstream bench aggregates --out bench/results
	@$(BIN)/millstream bench prodding --out bench/results

bench-peers: setup
	@bash scripts/bench_peers.sh

demo: setup
	@$(BIN)/millstream demo

cluster: setup
	@bash scripts/cluster.sh start

cluster-stop:
	@bash scripts/cluster.sh stop

clean:
	rm -rf $(VENV) build src/*.egg-info bench/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
