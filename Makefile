PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LAB := $(VENV)/.lab
STAMP := $(VENV)/.installed
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: venv test lint types unit demo bench clean

venv: $(STAMP)

$(LAB): pyproject.toml constraints.txt
	@echo "installing PyTorch and the lab into $(VENV), a minute or so"
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e '.[lab]'
	touch $@

$(STAMP): $(LAB)
	@echo "installing what the tests need too, a minute or two"
	$(INSTALL) -e '.[dev]'
	touch $@

test: lint types unit

lint: venv
	$(BIN)/ruff check src tests benchmarks examples results conftest.py
	$(BIN)/ruff format --check src tests benchmarks examples results conftest.py
	$(BIN)/lint-imports

types: venv
	$(BIN)/mypy

unit: venv
	$(BIN)/pytest -n 2

demo: $(LAB)
	$(BIN)/carpediem compare --out demo
	@echo "the report, to open in a browser:"
	@$(BIN)/carpediem report demo

bench: venv
	$(BIN)/python benchmarks/bench_selection.py

clean:
	rm -rf $(VENV) demo
