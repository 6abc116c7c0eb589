# Two commands matter: `make demo` shows what rigctl does, `make test` proves it. Everything else is a part of them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MACHINE := $(shell uname -m)
AGENT := agents/dist/rigctl-agent-$(MACHINE)
OF_WINDOWS := agents/dist/rigctl-agent-windows-x86_64.exe
SOURCES := $(wildcard agents/*.c agents/*.h) agents/Makefile
DEMO_STORE := $(VENV)/demo.db
# What is imported is compiled once and kept. Where a container sets this, each start of rigctl compiles all of it again: 3 s for 1.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: samples demo test tests compiled foreign lint types unit bench clean system agents mutants torture machines docs pages fuzz golden steady wheel wheelhouse house release packages

demo: $(VENV)/run.stamp $(AGENT)
	@echo "Seven tests, four times 2 s each, on the virtual rig: about one minute."
	@$(BIN)/rigctl run scenarios/gigablox.yaml --duration 2s --repeat 4 --store $(DEMO_STORE) --report reports/demo.html

# While Debian's packages are installed, another processor makes what the tests need. Then the tests, which mostly wait, run beside all that
# computes: lint, types, the agent for Windows nodes. Its tests and those of the documentation's site run where their sources have changed
# since they last passed, and in each new clone; agents for other machines by `make foreign`.
test:
	$(MAKE) -j3 --output-sync=target system $(AGENT) compiled
	$(MAKE) -j3 --output-sync=line tests $(VENV)/windows.stamp types lint $(VENV)/docs.stamp

$(OF_WINDOWS): $(VENV)/dev.stamp $(SOURCES)
	$(BIN)/rigctl agent build --target windows-x86_64

# Compiles what the tests import, once: each of the workers would compile all of it again, 20 s of processor time for each.
compiled: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -q --collect-only $(FLOORS) >/dev/null

# Whole files go to five workers, those that take longest first: end-to-end tests mostly wait.
FLOORS := tests/e2e tests/integration tests/agent tests/golden tests/unit
FOREIGN := tests/agent/test_foreign.py
SITE := tests/e2e/test_docs_site.py
WINDOWS := tests/agent/test_windows.py tests/integration/test_windows_node.py
APART := $(addprefix --ignore=,$(FOREIGN) $(SITE) $(WINDOWS))
tests: $(VENV)/dev.stamp $(AGENT)
	CI=1 $(BIN)/python -m pytest -q -n 5 --dist loadfile --no-loadscope-reorder --durations=15 $(FLOORS) $(APART)

# Agents of other machines, not in CI: the compiler makes a C library for each, so that Raspberry Pis and FreeBSD stand for all of them here.
# `make torture` and `make packages` build every agent.
foreign steady torture: PACKAGES += qemu-user-static
foreign: system $(VENV)/dev.stamp
	nice -n 5 $(BIN)/rigctl agent build --target aarch64 --target armv7 --target freebsd-x86_64 --target windows-x86_64
	CI=1 $(BIN)/python -m pytest -q $(FOREIGN)

$(VENV)/windows.stamp: $(VENV)/dev.stamp $(AGENT) $(OF_WINDOWS) $(WINDOWS) $(wildcard rigctl/*/*.py rigctl/*/*/*.py tests/support/w*.py)
	CI=1 $(BIN)/python -m pytest -q $(WINDOWS)
	touch $@

$(VENV)/docs.stamp: $(VENV)/dev.stamp mkdocs.yml $(SITE) $(shell find docs -type f -name '*.*')
	CI=1 $(BIN)/python -m pytest -q $(SITE)
	touch $@

# Not in CI: each run takes as long as `make test`. Runs all tests N times, on an idle machine, on a busy one, on one processor, in random
# order, and prints each that failed. ON=busy TESTS="tests/agent/traffic" for some of them.
N ?= 5
steady: system $(VENV)/dev.stamp agents
	$(BIN)/python tests/bench/steady.py --runs $(N) $(if $(ON),--on $(ON)) $(TESTS)

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: $(VENV)/dev.stamp
	nice -n 5 $(BIN)/mypy

unit: $(VENV)/dev.stamp
	CI=1 nice -n 5 $(BIN)/python -m pytest -q -n 2 --dist loadfile --durations=5 tests/unit tests/golden

# Prints the golden pages anew, from the stored runs in tests/golden/runs: read `git diff tests/golden` before you commit.
golden: $(VENV)/dev.stamp
	RIGCTL_GOLDEN=renew $(BIN)/python -m pytest -q tests/golden

agents: $(VENV)/dev.stamp
	$(BIN)/rigctl agent build

# Each prints its own table; none of them is a pass or a fail.
BENCHES := fidelity orchestration scale peers distance latency requests levels publish start
bench: $(VENV)/dev.stamp agents
	for bench in $(BENCHES); do $(BIN)/python tests/bench/bench_$$bench.py; done

# Not in CI: an hour and a half. Kills by the hundred, cuts, full disks, fuzzing, one test after the other;
# RIGCTL_SEED=N for other moments.
torture: system $(VENV)/dev.stamp agents
	RIGCTL_TORTURE=30 $(BIN)/python -m pytest -v -rP -o faulthandler_timeout=0 -m torture tests/unit tests/agent tests/integration tests/e2e

# Not in CI: half an hour. Boots machines, cuts their power, sets their clocks; Debian's packages come by apt, once.
MACHINE_PACKAGES := qemu-system-x86 qemu-system-arm qemu-utils e2fsprogs xz-utils
machines: system $(VENV)/dev.stamp agents
	$(MAKE) system PACKAGES="$(MACHINE_PACKAGES)"
	$(BIN)/python -m pytest -v -s -m machines -o faulthandler_timeout=3600 tests/machines

# Not in CI: a quarter of an hour for a fifth of them, beside other work. MUTANTS=--all takes every one.
mutants: $(VENV)/mutants.stamp
	nice -n 10 $(BIN)/python tests/bench/mutants.py $(MUTANTS)

# Not in CI: half an hour for each target of the agent, 200,000 cases for each reader; RIGCTL_FUZZ_MINUTES and RIGCTL_FUZZ_CASES change
# that. The agent's go on from what earlier runs found (agents/build/corpus); a finding is kept in agents/build/found. The long timeout
# is for a process that does not run meanwhile.
fuzz: system $(VENV)/fuzz.stamp
	$(MAKE) -s -C agents fuzz
	for target in $(notdir $(wildcard agents/fuzz/corpus/*)); do \
		mkdir -p agents/build/corpus/$$target agents/build/found; \
		time nice -n 10 agents/build/fuzz-$$target -max_total_time=$$((60 * $${RIGCTL_FUZZ_MINUTES:-30})) -timeout=1200 -max_len=4096 \
			-dict=agents/fuzz/agent.dict -artifact_prefix=agents/build/found/$$target- -print_final_stats=1 -reduce_inputs=1 \
			agents/build/corpus/$$target agents/fuzz/corpus/$$target || exit 1; \
	done
	for target in theme rig nights scenario reply hosts import iperf3 store; do \
		nice -n 10 $(BIN)/python tests/bench/fuzz_readers.py $$target $${RIGCTL_FUZZ_CASES:-200000} -verbosity=0 || exit 1; \
	done

# About half an hour; wants a machine that does nothing else.
samples: $(VENV)/dev.stamp agents
	$(BIN)/python reports/make_samples.py

# The documentation as a site in build/docs: no server, no request that leaves it.
docs: $(VENV)/dev.stamp pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "build/docs/index.html"

# What is made from the code.
pages: $(VENV)/dev.stamp
	$(BIN)/python docs/columns_page.py >docs/reference/columns.md
	$(BIN)/python docs/commands_page.py >docs/reference/commands.md
	$(BIN)/python docs/rules_page.py >docs/reference/limit-rules.md
	$(BIN)/python docs/rooms_picture.py >docs/assets/rooms.svg
	$(BIN)/python docs/sample_blocks.py
	$(BIN)/python docs/json_schemas.py >/dev/null

# The wheel with the agents of all machines, in dist/.
VERSION := $(shell sed -n 's/^__version__.*"\(.*\)"/\1/p' rigctl/base/version.py)
WHEEL := dist/rigctl-$(VERSION)-py3-none-any.whl
wheel: $(VENV)/dev.stamp
	rm -rf dist
	nice -n 5 $(BIN)/python -m build --wheel --no-isolation --outdir dist . >/dev/null
	@echo "$(WHEEL)"

# One archive that installs without internet: rigctl's wheel and those of its dependencies, in the tested versions. Each Python needs
# its own: PLATFORM=aarch64 PYTHONS="3.11 3.13" make wheelhouse. EXTRAS=parquet,postgresql adds theirs.
PLATFORM ?= $(MACHINE)
PYTHONS ?= $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
HOUSE = rigctl-$(VERSION)-wheelhouse-$(PLATFORM)
TAGS = manylinux2014 $(foreach glibc,17 24 26 27 28,manylinux_2_$(glibc))
wheelhouse: wheel
	$(MAKE) house

house:
	rm -rf build/$(HOUSE); mkdir -p build/$(HOUSE)
	for python in $(PYTHONS); do \
		$(BIN)/python -m pip download --quiet --disable-pip-version-check -c constraints.txt --dest build/$(HOUSE) --only-binary=:all: \
			--python-version $$python $(TAGS:%=--platform %_$(PLATFORM)) "$(WHEEL)$(if $(EXTRAS),[$(EXTRAS)])"; \
	done
	echo 'pip install --no-index --find-links $(HOUSE) rigctl' >build/$(HOUSE)/INSTALL
	tar -C build --owner=0 --group=0 -cf dist/$(HOUSE).tar $(HOUSE)
	rm -rf build/$(HOUSE)
	@echo "dist/$(HOUSE).tar"

# What a release has: wheel, wheelhouses, agents, SBOM, sums, and the changes as its notes.
release: wheel
	$(MAKE) house PLATFORM=x86_64
	$(MAKE) house PLATFORM=aarch64
	$(BIN)/python -m zipfile -e $(WHEEL) build/release
	cp build/release/rigctl/bundled/agents/rigctl-agent-* build/release/rigctl-$(VERSION).dist-info/sboms/*.json dist
	rm -rf build/release
	sed -n '/^## $(subst .,\.,$(VERSION))/,/^## /{/^## /!p}' CHANGELOG.md >build/notes.md
	cd dist && sha256sum * >SHA256SUMS && cat SHA256SUMS

# Not in CI, before a release: ten minutes and the package index. Installs the wheel as users do: on other machines, without internet, as a
# stranger with two hosts, as a container; then the commands of a release, but for its publication.
packages: PACKAGES += buildah mmdebstrap debian-archive-keyring qemu-user-static
packages: system wheelhouse
	$(BIN)/python -m pytest -v -m packages tests/packages

clean:
	rm -rf $(VENV) mutants dist build agents/build agents/dist .pytest_cache .ruff_cache .mypy_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The demo needs rigctl and the host's own agent only; its C compiler is enough for that.
$(AGENT): $(VENV)/run.stamp $(SOURCES)
	$(BIN)/rigctl agent build --target $(MACHINE)

# What is imported is compiled then: a fraction of it all, and not before the first test.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# Beside `system`, unless Python's own way to make one is a package still to come.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || $(MAKE) system
	$(PYTHON) -m venv $(VENV)

# --no-build-isolation: an editable install then needs hatchling alone, not what a wheel's agents are built with.
$(VENV)/run.stamp: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) -c constraints.txt hatchling editables
	$(PIP) -c constraints.txt --no-build-isolation -e .
	touch $@

$(VENV)/dev.stamp: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) -c constraints.txt hatchling editables
	$(PIP) -c constraints.txt --no-build-isolation -e '.[dev]'
	touch $(VENV)/run.stamp $@

$(VENV)/fuzz.stamp: $(VENV)/dev.stamp
	$(PIP) -c constraints.txt --no-build-isolation -e '.[fuzz]'
	touch $@

$(VENV)/mutants.stamp: $(VENV)/dev.stamp
	$(PIP) -c constraints.txt --no-build-isolation -e '.[mutants]'
	touch $@

# What the tests start for real. Installed where we may; otherwise the tests say what is missing, by name.
PACKAGES := python3-venv gcc libc6-dev clang libclang-rt-14-dev iproute2 iputils-ping ethtool nftables iperf3 openssh-server openssh-client \
	chromium util-linux sudo file make jq snmpd snmp lldpd postgresql systemd tmux \
	slurmctld slurmd slurm-client munge dropbear-bin busybox-static fish tcsh wine wine64 bindfs fuse3 perl
# Tests start a PostgreSQL server of their own: Debian's package need not make and start one (a few seconds).
NO_CLUSTER := /etc/postgresql-common/createcluster.conf
system:
	@exec 9<Makefile; flock 9; \
	missing=$$(for p in $(PACKAGES); do dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done); \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		mkdir -p /etc/postgresql-common; [ -e $(NO_CLUSTER) ] || echo 'create_main_cluster = false' >$(NO_CLUSTER); \
		apt-get update -qq && UCF_FORCE_CONFFOLD=1 DEBIAN_FRONTEND=noninteractive \
			apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	elif [ -n "$$missing" ]; then echo "not installed, and not root to install them:" $$missing; fi
