"""Fixtures for tests of the real agent, as shipped and with AddressSanitizer and UBSan.

`threaded` is the agent with ThreadSanitizer. `clock` starts sanitized agents whose clock the test moves.
"""

import fcntl
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import fake_clock
import pytest
from fake_clock import FakeClock
from lab import Lab, laboratory
from talk import AGENTS, Start, Talk
from wine import bare_prefix, end_wine, has_wine

from rigctl.remote.build import build_binaries, host_machine


def made(target: str) -> Path:
    with (AGENTS / "Makefile").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["make", "-s", "-C", str(AGENTS), target], check=True)
    return AGENTS / "build" / f"rigctl-agent-{target}"


@pytest.fixture(scope="session")
def release() -> Path:
    return build_binaries([host_machine()])[0].path


@pytest.fixture(scope="session")
def sanitized() -> Path:
    return made("sanitized")


@pytest.fixture(scope="session")
def threaded() -> Path:
    return made("threaded")


# Only in `make torture`, because all end-to-end tests use the shipped agent anyway.
SHIPPED = pytest.param("release", marks=[pytest.mark.torture, pytest.mark.long])
UNDER_WINE = pytest.param("windows", marks=[pytest.mark.torture, pytest.mark.long])


@pytest.fixture(scope="session")
def windows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a program that is the agent for Windows under Wine."""
    assert has_wine(), "install wine64 by `make system`"
    folder = tmp_path_factory.mktemp("wine")
    environment = bare_prefix(folder / "prefix")
    (agent,) = build_binaries(["windows-x86_64"])
    program = folder / "agent"
    program.write_text(f'#!/bin/sh\nWINEDEBUG=-all WINEPREFIX="{folder}/prefix" exec wine "{agent.path}" "$@"\n')
    program.chmod(0o755)
    yield program
    end_wine(environment)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out tests under Wine that are not marked `windows`."""
    items[:] = [
        item
        for item in items
        if not isinstance(item, pytest.Function) or item.get_closest_marker("windows")
        or getattr(item, "callspec", None) is None or item.callspec.params.get("binary") != "windows"
    ]  # fmt: skip


@pytest.fixture(scope="session", params=[SHIPPED, "sanitized", UNDER_WINE])
def binary(request: pytest.FixtureRequest) -> Path:
    path: Path = request.getfixturevalue(request.param)
    return path


@pytest.fixture
def start(binary: Path) -> Iterator[Start]:
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(Talk([str(binary)], *arguments))


@pytest.fixture
def receiver(start: Start) -> Talk:
    return start()


@pytest.fixture
def sender(start: Start) -> Talk:
    return start()


@pytest.fixture
def mute() -> Iterator[socket.socket]:
    """A receiver that accepts no flow."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


@pytest.fixture(scope="module")
def agent(binary: Path) -> Iterator[Talk]:
    with Talk([str(binary)]) as made:
        yield made


@pytest.fixture(scope="module")
def unchanged(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Yield one network namespace for all tests of a file that do not change it."""
    with laboratory(binary, tmp_path_factory.mktemp("lab")) as made:
        yield made


@pytest.fixture
def lab(binary: Path, tmp_path: Path) -> Iterator[Lab]:
    with laboratory(binary, tmp_path) as made:
        yield made


@pytest.fixture(scope="session")
def clock_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_clock.preloaded(fake_clock.SOURCE, tmp_path_factory.mktemp("clock"))


@pytest.fixture
def clock(sanitized: Path, clock_library: Path, tmp_path: Path) -> Iterator[FakeClock]:
    with ExitStack() as stack:
        yield FakeClock(sanitized, clock_library, tmp_path, stack)


@pytest.fixture
def still_lab(sanitized: Path, tmp_path: Path) -> Iterator[Lab]:
    """Yield a network namespace for agents with a fake clock, started with `by=clock.by`."""
    with laboratory(sanitized, tmp_path) as made:
        yield made
