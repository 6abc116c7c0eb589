"""The real agent, twice: as it is shipped, and with AddressSanitizer and UBSan. `threaded`: with ThreadSanitizer."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from talk import Talk

from agents import AGENTS, Start
from rigctl.remote.build import build, host_machine


@pytest.fixture(scope="session")
def release() -> Path:
    return build([host_machine()])[0].path


@pytest.fixture(scope="session")
def sanitized() -> Path:
    subprocess.run(["make", "-s", "-C", str(AGENTS), "sanitized"], check=True)
    return AGENTS / "build" / "rigctl-agent-sanitized"


@pytest.fixture(scope="session")
def threaded() -> Path:
    subprocess.run(["make", "-s", "-C", str(AGENTS), "threaded"], check=True)
    return AGENTS / "build" / "rigctl-agent-threaded"


@pytest.fixture(params=["release", "sanitized"])
def binary(request: pytest.FixtureRequest) -> Path:
    path: Path = request.getfixturevalue(request.param)
    return path


@pytest.fixture
def start(binary: Path) -> Iterator[Start]:
    """Starts agents, which end with the test."""
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(Talk([str(binary)], *arguments))
