# `make demo` and `make test` need only Python 3.11 or newer with venv; each makes .venv for itself.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
EXAMPLES := $(patsubst %,examples/%.toml,vecadd matmul histogram reduce saxpy)

# Of tests: each process has one thread of linear algebra, and keeps bytecode, as tests start thousands of processes.
ALONE := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

.PHONY: demo test test-full lint types docs unit unit-touched golden test-slurm format clean data data-corun

demo: $(STAMP)
	mkdir -p out
	@echo; echo "What it is, on no device: 45 metrics of each kernel launch"
	$(BIN)/crosscast characterize $(EXAMPLES) --check-bounds --parquet out/profiles.parquet --plot out/kiviat.png
	@echo; echo "How long it takes on 15 devices that are not here, by a bundled model"
	$(BIN)/crosscast predict examples/saxpy.toml --html out/forecast.html
	$(BIN)/crosscast predict relative examples/matmul.toml --kernel matmul_tiled --relative-to i7-6700k
	$(BIN)/crosscast models opencl-15-devices
	@echo; echo "This machine joins that model, and the kernel is measured on it"
	XDG_DATA_HOME=out/data $(BIN)/crosscast calibrate --device pocl:0 --minutes 0.5 --name here
	XDG_DATA_HOME=out/data $(BIN)/crosscast predict examples/matmul.toml --kernel matmul --devices here,gtx1080
	$(BIN)/crosscast measure examples/matmul.toml --device pocl:0 --min-time 0.5
	@echo; echo "A schedule of a made cluster"
	$(BIN)/crosscast simulate policies examples/made-cluster.swf --policy fcfs,easy --backfill fcfs,shortest
	$(BIN)/crosscast simulate policies examples/made-cluster.swf --users --figures out/cluster
	@echo
	@echo "The forecast is out/forecast.html, the picture of the profiles out/kiviat.png, that of the schedule out/cluster/timeline.png."
	@echo "Next, with a kernel of your own: $(BIN)/crosscast predict my.cl --kernel NAME --global 1048576 --arg float:1048576:uniform ..."
	@echo "and a device of your own in it: $(BIN)/crosscast calibrate --device pocl:0 --name mine"

# Types and the site take one processor each for a minute, so that they go beside the tests, which leave it idle at times.
test: lint
	$(MAKE) --no-print-directory -j3 types docs unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

# The documentation's site, in out/site: a warning is an error, as a link that leads nowhere.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

unit: $(STAMP)
	$(ALONE) $(BIN)/pytest -n auto --maxprocesses 4 --dist worksteal

# All of the above with more examples a law, and with the tests that are marked `system`: those in a browser, on a
# real Slurm, of the built wheel, of notebooks, and of long laws.
test-full: lint types docs
	$(ALONE) $(BIN)/pytest -n auto --maxprocesses 4 --dist worksteal \
	    --hypothesis-profile=full -m ''

# Writes the texts that commands print into tests' golden files, to be looked at before they are committed.
golden: $(STAMP)
	CROSSCAST_GOLDEN=write $(BIN)/pytest -q -k 'as_it_was or as_they_were' tests/cli tests/data tests/evaluation tests/prediction tests/report tests/studies

# The tests marked `system` of the folders that the last change touched; without any there is nothing to do.
unit-touched: $(STAMP)
	@paths="$$($(BIN)/python .ci/touched.py)"; test -z "$$paths" || { $(ALONE) $(BIN)/pytest -m system -n auto --maxprocesses 4 --dist worksteal $$paths || test $$? = 5; }

# Tests of the hooks on a real Slurm; it installs nothing, and says what to install. CROSSCAST_JOBS=1000 for a long one.
test-slurm: $(STAMP)
	$(BIN)/pytest -m system tests/service/test_slurm_submission.py tests/service/test_slurm_nodes.py

# The datasets that come with the package; run these on a machine with nothing else to do.
data: $(STAMP)
	$(BIN)/crosscast dataset build --out src/crosscast/data/bundled/suite --suite all --sizes tiny,small,medium --devices all
	$(BIN)/python -m benchmarks.bundled records src/crosscast/data/bundled/suite

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
