# orchestrate: make demo, make test, make lint, make ui, make lock
VENV ?= .venv
PYTHON ?= python3
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock

.PHONY: demo test lint types readme ui lock clean

demo: $(VENV)/.demo
	$(BIN)/orchestrate launch --space aot_fc --tasks glue $(DEMO_OPTIONS)

test: $(VENV)/.dev
	$(BIN)/python -m pytest $(PYTEST_OPTIONS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

readme: $(VENV)/.dev
	$(BIN)/python -m orchestrator.method_table README.md

ui: $(VENV)/.demo
	$(BIN)/mlflow ui --backend-store-uri sqlite:///$${ORCHESTRATE_HOME:-orchestrate_home}/mlflow.db --host 127.0.0.1

# every dependency of every extra, as one fresh installation resolved it
lock:
	rm -rf $(VENV)-lock
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0 --editable '.[dev]'
	{ echo '# one fresh installation of every extra; written by: make lock'; \
	  $(VENV)-lock/bin/python -m pip freeze --exclude-editable | sed 's/^torch==2.13.0+.*/torch==2.13.0/'; } > requirements.lock
	rm -rf $(VENV)-lock

clean:
	rm -rf $(VENV) *.egg-info

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml requirements.lock
	$(PIP) --editable '.[demo]'
	touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml requirements.lock
	$(PIP) --editable '.[dev]'
	touch $@
