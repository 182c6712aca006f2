# Everything a newcomer needs: `make demo`, `make test`. Each target installs what it needs into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One BLAS thread a process: competing threads make factorisations tens of times slower.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export JAX_PLATFORMS ?= cpu
# Workers of the test run; the suite is sized for two.
WORKERS ?= 2
TEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

.PHONY: demo test test-all lint format docs notebooks bench gpu-check clean

demo: $(VENV)/.core
	$(BIN)/jaxpriv demo

# The fast suite is mostly compilation: it compiles without optimisation, `make test-all` as users do.
test: $(VENV)/.test
	JAX_DISABLE_MOST_OPTIMIZATIONS=1 $(TEST) -m "not slow"

test-all: $(VENV)/.test
	$(TEST)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The site, in site/; a dead link or a name without a page fails.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# Every notebook, at the small size that is its default.
notebooks: $(VENV)/.notebooks
	JAXPRIV_ZONES=50 $(TEST) --nbmake notebooks

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

gpu-check: $(VENV)/.test
	JAX_PLATFORMS=cuda,cpu $(BIN)/python -m benchmarks.accelerator

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	# Dependency groups need a pip of 2025 or later.
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable . --group test
	touch $@

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable . --group test --group bench
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable . --group test --group dev
	touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable . --group docs
	touch $@

$(VENV)/.notebooks: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable . --group test --group notebooks
	touch $@

clean:
	rm -rf site $(VENV) .pytest_cache .ruff_cache jaxpriv-demo
