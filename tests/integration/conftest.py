"""Fixtures of the integration tests: `sshd` starts real OpenSSH servers; others give folders, names and commands."""

import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from openssh import Hanging, SshdFactory, Start


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Start]:
    """Yield a factory that starts an sshd at each call. All servers end with the test."""
    factory = SshdFactory(tmp_path)
    yield factory
    for server in factory.servers:
        server.stop()


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[Hanging]:
    """Yield a command that does not end by itself; kill it after the test."""
    made = Hanging(tmp_path / "hanging")
    yield made
    if made.begun:
        with suppress(ProcessLookupError):
            os.kill(int(made.file.read_text()), signal.SIGKILL)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home folder with an empty .ssh; no ssh-agent is set."""
    folder = tmp_path / "home"
    (folder / ".ssh").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return folder


@pytest.fixture
def runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the runtime folder of this test's virtual rigs, separate from those of other tests."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "rigctl"


@pytest.fixture
def name() -> str:
    """Return a unique node name, because tests that run at the same time share the host's locks."""
    return f"pi-{secrets.token_hex(4)}"
