PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: venv test lint types unit demo bench clean

venv: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

test: lint types unit

lint: venv
	$(BIN)/ruff check src tests benchmarks examples conftest.py
	$(BIN)/ruff format --check src tests benchmarks examples conftest.py
	$(BIN)/lint-imports

types: venv
	$(BIN)/mypy

unit: venv
	$(BIN)/pytest -n 2

demo: venv
	$(BIN)/carpediem compare --out demo
	@echo "the report, to open in a browser:"
	@$(BIN)/carpediem report demo

bench: venv
	$(BIN)/python benchmarks/bench_selection.py

clean:
	rm -rf $(VENV) demo
