# Every target makes the environment it needs (.venv, from the exact versions in requirements/) by itself.
PYTHON ?= python3
PYTEST_ARGS ?=
BENCH ?=
SF ?= 0.05
DEMO ?=
CASES ?= 1000
KILLS ?= 50
INTERRUPTS ?= 180
# Random queries, texts, goals and rules of a night have seeds from here on. 997 is prime, so that the days draw every part of a share.
SEED ?= $(shell echo $$(($$(date +%s) / 86400 * 997)))

VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
# The stamp names the interpreter's version, so that another PYTHON makes the environment anew.
STAMP := .venv/installed-$(VERSION)
RUN := .venv/bin/python
STYLE := $(RUN) -m ruff check . && $(RUN) -m ruff format --check .
TYPES := $(RUN) -m mypy
# Python compiles what is imported, a small part of what is installed.
PIP := $(RUN) -m pip install --disable-pip-version-check --no-deps --no-compile
# All tests of the Spark session go to one process, so that one Java serves them.
PYTEST := $(RUN) -m pytest -n 2 --dist loadgroup --durations=25
# A third of the time of two processes is waiting: for servers, browsers, Java and timers. A third process uses it.
TEST := $(RUN) -m pytest -n 3 --dist loadgroup --durations=25
NIGHT := TEKTITE_NIGHTLY=1 TEKTITE_SEED=$(SEED) HYPOTHESIS_PROFILE=nightly $(PYTEST)
WARM := $(RUN) -m tektite.kernels.warm

# Where the environment forbids bytecode, each of the hundreds of processes that tests start would compile the package anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo test nightly nightly-sql nightly-datalog nightly-examples nightly-executors nightly-spark \
  soak soak-interrupts soak-kills bench wheel console-vendor lint format clean distclean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile
	@echo
	@echo "  PYTHON=python3.12        the interpreter to build .venv with (3.11 or later)"
	@echo "  PYTEST_ARGS='-m \"not slow\"'   more arguments for pytest, for make test"
	@echo "  SF=0.05                  TPC-H scale factor of make demo"
	@echo "  SEED=20713672            where the random queries, goals and texts of make nightly begin, instead of a number of the day"
	@echo "  CASES=1000               how many storages make soak works on, three kills each"
	@echo "  KILLS=50                 how often make soak kills a Spark driver"
	@echo "  INTERRUPTS=180           at how many lines make soak interrupts each call, in each setting: some 6,000 in all"
	@echo "  BENCH='count join'       which benchmarks to run, and their options; all of them if empty"

demo: $(STAMP)  ## 110 standing TPC-H queries: shared, not shared, and by Spark SQL; DEMO holds options, such as --help
	$(RUN) -m examples.demo --scale $(SF) $(DEMO)

# Kernels compile on all cores first. Types are checked while tests wait for something; what is wrong with them is said at the end.
test: $(STAMP)  ## check style and types, run the tests and the examples in the documentation
	@begun=$$(date +%s); mkdir -p out; \
	$(STYLE) && $(WARM) || exit 1; \
	nice -n 19 $(TYPES) > out/types.txt 2>&1 & types=$$!; \
	$(TEST) $(PYTEST_ARGS); tested=$$?; \
	wait $$types; typed=$$?; echo "mypy: $$(tail -n 1 out/types.txt)"; test $$typed = 0 || cat out/types.txt; \
	echo "make test: $$(($$(date +%s) - begun)) seconds"; test $$tested = 0 && test $$typed = 0

# Each part can be run alone, as make nightly-sql; one that fails does not stop the others.
nightly:  ## what make test leaves out: more random examples, other executors; in parts: nightly-sql, -datalog, -examples, -executors, -spark
	$(MAKE) --keep-going nightly-sql nightly-datalog nightly-examples nightly-executors nightly-spark

nightly-sql: $(STAMP)  # 3,000 random queries, 30,000 texts, TPC-H at a larger scale
	$(WARM)
	TEKTITE_SQL_QUERIES=3000 TEKTITE_FUZZ=30000 TEKTITE_TPCH_SCALE=0.05 $(NIGHT) -m 'not spark' tests/sql $(PYTEST_ARGS)

nightly-datalog: $(STAMP)  # 5,000 goals, 2,000 rules with aggregates
	$(WARM)
	TEKTITE_GOALS=5000 TEKTITE_DATALOG_RULES=2000 $(NIGHT) -m 'not spark' tests/datalog $(PYTEST_ARGS)

nightly-examples: $(STAMP)  # all other tests without Spark that differ at night: many more random examples and kills
	$(WARM)
	TEKTITE_KILL_CASES=60 TEKTITE_SCHEDULES=5 $(NIGHT) -m 'not spark' --ignore tests/sql --ignore tests/datalog --ignore tests/spark $(PYTEST_ARGS)

nightly-executors: $(STAMP)  # tests of behaviour on executors that their markers do not name: a share of them, another one each day
	$(WARM)
	TEKTITE_OTHER_EXECUTORS='stages:6 spark:40' TEKTITE_SEED=$(SEED) $(PYTEST) -m 'executors' $(PYTEST_ARGS)

nightly-spark: $(STAMP)  # tests of Spark that are too heavy for make test
	$(WARM)
	$(NIGHT) -m nightly tests/spark tests/house/test_demo.py $(PYTEST_ARGS)

# Parts as well: make soak-interrupts, make soak-kills.
soak:  ## interrupt calls at INTERRUPTS lines each; kill processes: writers of CASES storages at random steps, a Spark driver KILLS times, executors, workers
	$(MAKE) --keep-going soak-interrupts soak-kills

soak-interrupts: $(STAMP)
	$(WARM)
	TEKTITE_INTERRUPTS=$(INTERRUPTS) $(NIGHT) tests/engine/test_interrupts.py $(PYTEST_ARGS)

soak-kills: $(STAMP)
	$(WARM)
	TEKTITE_KILL_CASES=$(CASES) TEKTITE_KILLS=$(KILLS) $(NIGHT) -m soak $(PYTEST_ARGS)

bench: $(STAMP)  ## run benchmarks; results go to out/
	$(RUN) -m tektite.kernels.warm
	@mkdir -p out
	$(RUN) -m benchmarks --json out/benchmarks.jsonl $(BENCH)

wheel: $(STAMP)  ## build a wheel with compiled kernels into dist/: it needs neither Numba nor a compiler to run
	$(RUN) -m pip wheel --disable-pip-version-check --no-deps --no-build-isolation -w dist .

console-vendor:  ## bundle the libraries of the console anew, which are checked in; needs Node and npm
	cd tools/console && npm ci --ignore-scripts --no-audit --no-fund && node build.mjs

lint: $(STAMP)  ## check style and types
	$(STYLE) && $(TYPES)

format: $(STAMP)  ## rewrite the sources in the project's style
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

# Kernels need a few of the packages alone: they compile while the others come. Whoever needs them sees what went wrong there.
$(STAMP): $(wildcard requirements/*.txt) pyproject.toml setup.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Tektite needs Python 3.11 or later; $(PYTHON) is " \
	  + sys.version.split()[0] + ". Choose another one: make PYTHON=python3.12 ...")'
	@echo "Making .venv with $(PYTHON) ($(VERSION)); this downloads the pinned packages from PyPI once."
	@rm -f .venv/installed-*
	@if [ -x $(RUN) ] && [ "$$($(RUN) -c 'import sys; print("%d.%d" % sys.version_info[:2])')" != "$(VERSION)" ]; \
	  then $(PYTHON) -m venv --clear .venv; else $(PYTHON) -m venv .venv; fi
	$(PIP) -r requirements/runtime.txt -r requirements/build.txt
	@command -v $${CC:-cc} > /dev/null || $(PIP) -r requirements/compiler.txt
	$(PIP) --no-build-isolation -e .
	@$(RUN) -m tektite.kernels.warm > .venv/kernels.txt 2>&1 & kernels=$$!; \
	echo "$(PIP) -r requirements/dev.txt  # while kernels compile"; $(PIP) -r requirements/dev.txt; installed=$$?; \
	wait $$kernels; exit $$installed
	$(RUN) -m pip check
	@touch $@

clean:  ## remove caches and results
	rm -rf out build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find tektite tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean  ## remove the environment as well
	rm -rf .venv
