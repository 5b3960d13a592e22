# Every target sets up .venv by itself; `make env PYTHON=python3.12` chooses another interpreter.
PYTHON ?= python3
VENV := .venv
N ?= 10
MINUTES ?= 10
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help env run test torch check matrix repeat fuzz soak slow lint types format docs tables clean

help:
	@echo "make run      train on real data, print what was solved, write out/run.png"
	@echo "make test     run the whole test suite (ARGS=\"tests/test_cli.py -x\" for pytest: a part of it)"
	@echo "make torch    install PyTorch, unless it is there, and run the tests that need it"
	@echo "make check    build the package, install it in an empty environment, try it there"
	@echo "make matrix   the test suite with each of Python 3.11, 3.12, 3.13 and newer that is found (takes ARGS)"
	@echo "make repeat   the test suite ten times, by turns with warm and empty caches (N=4: four times; takes ARGS)"
	@echo "make fuzz     random problems against every promise, damaged files, requests (FUZZ_MINUTES=60: for so long)"
	@echo "make soak     attack the HTTP service, then load it for ten minutes (MINUTES=60: for an hour)"
	@echo "make slow     every test that is not in the suite, those among them: each solver on each problem and backend"
	@echo "make tables   reproduce the paper's Table 1 and Table 2 (needs SYMSVM_DATA)"
	@echo "make lint     check style;  make format  apply it"
	@echo "make types    check the types of the package with pyright"
	@echo "make docs     write the generated pages"
	@echo "make env      only set up .venv (PYTHON=python3.12 chooses the interpreter)"

env: $(READY)

# An interpreter named on the command line replaces an environment that was made with another one.
ifneq ($(filter command line environment,$(origin PYTHON)),)
ifneq ($(shell cat $(READY) 2>/dev/null),$(PYTHON))
.PHONY: $(READY)
endif
endif

$(READY): pyproject.toml
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e ".[dev]"
	@$(BIN)/python -m pip install libsvm-official >$(VENV)/libsvm.log 2>&1 || echo "libsvm-official could not be built" \
		"(it needs g++; see $(VENV)/libsvm.log): the tests that compare with LIBSVM will skip."
	@echo "$(PYTHON)" > $@

run: $(READY)
	$(BIN)/python examples/run.py

test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

torch: $(READY)
	$(BIN)/python -m pip install --quiet "torch>=2.4"
	$(BIN)/python -m pytest tests/test_argmin.py -k torch

check: $(READY)
	$(BIN)/python tools/package.py

matrix:
	$(PYTHON) tools/runs.py matrix

repeat: $(READY)
	$(BIN)/python tools/runs.py repeat $(N)

# New examples each time; the seed it prints repeats a run: make fuzz SEED=123
ifndef SEED
SEED := $(shell $(PYTHON) -c "import random; print(random.randrange(2**32))")
endif
FUZZ = --hypothesis-profile=fuzz --hypothesis-seed=$(SEED)

# The tests that draw their own examples, then the promises of docs/promises.md: for a minute, or for FUZZ_MINUTES and
# without those tests. What broke is in out/fuzz/SEED: `.venv/bin/python tools/fuzz.py out/fuzz/SEED/NAME.json` tries it again.
fuzz: $(READY)
	@echo "make fuzz SEED=$(SEED)$(if $(FUZZ_MINUTES), FUZZ_MINUTES=$(FUZZ_MINUTES))"
ifndef FUZZ_MINUTES
	$(BIN)/python -m pytest -m "fuzz or hypothesis" -n 2 $(FUZZ)
endif
	$(BIN)/python tools/fuzz.py --seed $(SEED) --minutes $(or $(FUZZ_MINUTES),1)

soak: $(READY)
	$(BIN)/python benchmarks/soak.py --minutes $(MINUTES)

slow: $(READY)
	@echo "make slow SEED=$(SEED)"
	$(BIN)/python -m pytest -m slow -n 2 $(FUZZ)

tables: $(READY)
	$(BIN)/python examples/paper_tables.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/python tools/type_checks.py

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)
	$(BIN)/python docs/api.py
	$(BIN)/python docs/dictionary.py
	$(BIN)/python docs/rewrites.py
	$(BIN)/python docs/pipeline.py

clean:
	rm -rf $(VENV) .venvs out build dist *.egg-info
