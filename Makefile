# `make demo` and `make test` need only Python 3.11 or newer with venv; each makes .venv for itself.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
EXAMPLES := $(patsubst %,examples/%.toml,vecadd matmul histogram reduce)

DEMO_SUITE := bfs,csr,dwt,kmeans,lud,nw,srad

.PHONY: demo test lint types unit format clean data data-corun

demo: $(STAMP)
	mkdir -p out
	$(BIN)/crosscast characterize $(EXAMPLES) --check-bounds --parquet out/profiles.parquet --plot out/kiviat.png
	$(BIN)/crosscast devices
	$(BIN)/crosscast measure examples/matmul.toml --device pocl:0 --min-time 0.5
	$(BIN)/crosscast dataset build --out out/dataset --suite $(DEMO_SUITE) --sizes tiny,small --devices all \
	    --min-time 0.2
	@echo "kmeans is left out of the model, and predicted as an application that it never saw:"
	$(BIN)/crosscast train time out/dataset --without kmeans --out out/model
	$(BIN)/crosscast predict time out/dataset --application kmeans --model out/model
	$(BIN)/crosscast predict time examples/matmul.toml --model out/model
	$(BIN)/crosscast report out/dataset --application kmeans --out out/report.html
	$(BIN)/crosscast simulate policies examples/made-cluster.swf --policy fcfs,easy --backfill fcfs,shortest
	$(BIN)/crosscast simulate policies examples/made-cluster.swf --users --figures out/cluster
	@echo "The page of pictures is out/report.html, the picture of the profiles out/kiviat.png, that of the schedule out/cluster/timeline.png."
	@echo "'$(BIN)/crosscast dataset describe bundled' shows the dataset that comes with Crosscast."

test: lint types unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

# Two tests at a time, each with one thread of linear algebra: most wait for processes and compilers.
unit: $(STAMP)
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --maxprocesses 4 --dist worksteal

# The datasets that come with the package; run these on a machine with nothing else to do.
data: $(STAMP)
	$(BIN)/crosscast dataset build --out src/crosscast/data/bundled/suite --suite all --sizes tiny,small,medium --devices all

data-corun: $(STAMP)
	$(BIN)/crosscast corun campaign --out src/crosscast/data/bundled/corun --suite all --sizes small,medium --mixes 2,3 \
	    --most-mixes 160 --device pocl:0

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv out .mypy_cache .pytest_cache .ruff_cache

$(STAMP): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $(STAMP)
