# Everything sets itself up: a machine needs python3 and make.
#   make demo                       a first look: the paper's regression, sampled, held against the exact answer
#   make reproduce                  the paper's sampling experiments and a page of verdicts, in saltus-results; NAME=training for others
#   make wheel                      the wheel in dist, and what is in it
#   make release-check              sdist and wheel, installed into empty venvs on every Python that is here, with newcomers' walks; ONLY=3.13 for a part
#   make test                       lint, types and the tests; TESTS=tests/cli for some of them
#   make test PYTHON=python3.13     the same on another interpreter, in its own venv
#   make bench-memory               memory of a run of 10^6 draws x 100 chains x 100 sites that streams to disk
#   make test-bridges               NumPyro, PyMC, BlackJAX and ArviZ: on Python 3.11, and on 3.13 where that is installed
#   make test-full                  the slow proofs, file by file; outputs are kept in tests/full_output (delete one to repeat it)
#   make torture                    crashes, kills, full disks, flipped bits, crowds; outputs are kept in torture/results (delete one to repeat it);
#                                   an interrupted row goes on where it was; TORTURE_SECONDS=600 ends each row after ten minutes
#   make torture-quick              a few trials of each row, in a few minutes
#   make explorer                   the page of `saltus explore` anew, from web/explorer (needs node and npm)
#   make docs                       the documentation in build/site: examples run, figures drawn, links and spelling checked
#   make bench                      the speed table, goal by goal; results are kept in benchmarks/results/speed (delete one to repeat it)
#   make bench-first                a first sample of four targets: seconds, agreement, what the race cost
#   make bench-race                 does sampler="auto" pick well? on ten targets, results in benchmarks/results
PYTHON ?= python3
VENV := $(if $(filter python3,$(notdir $(PYTHON))),.venv,.venv-$(notdir $(PYTHON)))
BIN := $(VENV)/bin
NAME ?= sampling
READY := $(VENV)/.ready
# One XLA thread per worker: two workers share two cores.
ONE_THREAD := XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1" OMP_NUM_THREADS=1 JAX_PLATFORMS=cpu

.PHONY: demo docs explorer release-check reproduce wheel test test-bridges test-bridges-newest test-full torture torture-quick bench bench-memory bench-first bench-race lint style clean
.DELETE_ON_ERROR:

# The interpreter itself; a pyenv shim whose version is installed but not selected is looked up beside the shims.
FOUND = $(shell p="$$(command -v $(PYTHON))"; "$$p" -c 'import sys; print(sys.executable)' 2>/dev/null \
	|| ls -1 "$$(dirname "$$p")"/../versions/*/bin/$(notdir $(PYTHON)) 2>/dev/null | tail -n 1)

# Versions known to work, where there is a file of them for this Python; `make test LOCK=` takes the newest instead.
LOCK = $(shell v=$$("$(FOUND)" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); test -s .ci/lock-$$v.txt && echo "-c .ci/lock-$$v.txt")

$(READY): pyproject.toml
	@test -n "$(FOUND)" || { echo "$(PYTHON) was not found or does not run. Name another: make test PYTHON=python3.11"; exit 1; }
	@"$(FOUND)" -c 'import sys; sys.exit(sys.version_info < (3, 11) and "saltus needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another: make PYTHON=python3.13")'
	"$(FOUND)" -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(LOCK) -e '.[dev]' || { \
		test -n "$(LOCK)" && echo "the versions of the lock cannot all be had: installing the newest that fit" \
		&& $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'; }
	touch $@

demo: $(READY)
	$(BIN)/saltus demo

reproduce: $(READY)
	$(BIN)/python -m paper $(NAME)

wheel: $(READY)
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps -w dist .
	$(BIN)/python -m zipfile -l dist/saltus-*.whl

# Packages of node, for the explorer's page and for tests in a browser; only where node is there.
web/node_modules/.ready: web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund --silent
	touch $@

explorer: web/node_modules/.ready
	cd web && npm run --silent types && npm run --silent build

release-check: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	@$(BIN)/python .ci/release_check.py $(ONLY)

lint: style
	$(BIN)/mypy

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Types are looked at while the tests run: that takes a minute of one core, and the other would be idle.
# Where node or its packages cannot be had, the tests in a browser are skipped and say so.
test: style
	@if command -v npm > /dev/null; then $(MAKE) --no-print-directory web/node_modules/.ready || echo "npm ci failed: no tests in a browser"; fi
	@nice -n 5 $(BIN)/mypy > $(VENV)/mypy.txt 2>&1 & types=$$!; \
	SALTUS_QUICK_COMPILATION=1 $(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist worksteal --durations=10 -m "not full" $(TESTS); tests=$$?; \
	wait $$types; types=$$?; cat $(VENV)/mypy.txt; exit $$((tests | types))

# What `make test` leaves out. A file that has passed is not run again, so an interrupted run goes on.
test-full: lint
	@mkdir -p tests/full_output
	@for file in $$({ grep -lE "mark.full|mostly" tests/*/test_*.py; grep -oE "^tests/[^:]+" tests/slow.txt; } | sort -u); do \
		kept=tests/full_output/$$(basename $$file .py).txt; test -s $$kept && continue; echo $$file; \
		{ git log -1 --format="commit %h, %cs"; $(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist worksteal -v -m full $$file; } \
			> $(VENV)/full.txt 2>&1 || { tail -n 40 $(VENV)/full.txt; exit 1; }; \
		sed 's|$(CURDIR)|.|g' $(VENV)/full.txt > $$kept; tail -n 1 $$kept; \
	done

# In a venv of its own, since a reader of the code does not need it.
.venv-docs/.ready: pyproject.toml
	"$(FOUND)" -m venv --clear .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@

docs: .venv-docs/.ready
	.venv-docs/bin/codespell --ignore-words docs/words.txt README.md CHANGELOG.md CONTRIBUTING.md docs src/saltus examples
	.venv-docs/bin/python docs/_gallery.py
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --quiet
	@if command -v npm > /dev/null && [ -x /usr/bin/chromium ]; then \
		$(MAKE) --no-print-directory web/node_modules/.ready && node tests/browser/site.mjs build/site; \
	else echo "node or chromium is not here: the pages were not looked at in a browser"; fi

torture: $(READY)
	@$(ONE_THREAD) $(BIN)/python -m torture

torture-quick: $(READY)
	@SALTUS_QUICK_COMPILATION=1 $(ONE_THREAD) $(BIN)/python -m torture --quick

# Two venvs: what people have on Python 3.11, and the newest on 3.13. Nothing in tests/bridges is skipped here.
BRIDGES := 'numpyro>=0.22' 'blackjax>=1.7' pytest pytest-xdist -e '.[cli,io]'
THIRTEEN = $(shell python3.13 -c 'import sys; print(sys.executable)' 2>/dev/null \
	|| ls -1 "$$HOME"/.pyenv/versions/3.13*/bin/python3.13 "$$(dirname "$$(command -v python3)")"/../versions/3.13*/bin/python3.13 2>/dev/null | tail -n 1)

.venv-bridges/.ready: pyproject.toml
	"$(FOUND)" -m venv --clear .venv-bridges
	.venv-bridges/bin/python -m pip install --quiet --disable-pip-version-check 'pymc==5.28.*' 'arviz==0.23.*' $(BRIDGES)
	touch $@

.venv-bridges-3.13/.ready: pyproject.toml
	"$(THIRTEEN)" -m venv --clear .venv-bridges-3.13
	.venv-bridges-3.13/bin/python -m pip install --quiet --disable-pip-version-check 'pymc>=6,<7' 'arviz>=1' $(BRIDGES)
	touch $@

RUN_BRIDGES = SALTUS_BRIDGES=1 SALTUS_QUICK_COMPILATION=1 $(ONE_THREAD) $(1)/bin/python -m pytest -n 2 --dist worksteal --durations=5 -m "not full" tests/bridges

test-bridges: .venv-bridges/.ready
	$(call RUN_BRIDGES,.venv-bridges)
	@if [ -n "$(THIRTEEN)" ]; then $(MAKE) test-bridges-newest; else echo "Python 3.13 was not found: the bridges were tested on one interpreter only"; fi

test-bridges-newest: .venv-bridges-3.13/.ready
	$(call RUN_BRIDGES,.venv-bridges-3.13)

# In a venv of its own, with the packages it compares with.
.venv-bench/.ready: pyproject.toml
	"$(FOUND)" -m venv --clear .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	touch $@

bench: .venv-bench/.ready
	@.venv-bench/bin/python -m benchmarks -o benchmarks/results/speed

bench-first: $(READY)
	@$(BIN)/python benchmarks/first_sample.py

bench-race: $(READY)
	@$(BIN)/python -m benchmarks.race

bench-memory: $(READY)
	@$(BIN)/python benchmarks/memory.py

clean:
	rm -rf .venv .venv-* build dist
