"""Fixtures of the integration tests: `sshd` starts real OpenSSH servers, `home` is an empty one, `name` is a node's."""

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
    """Starts an sshd at each call; all end with the test."""
    factory = SshdFactory(tmp_path)
    yield factory
    for server in factory.servers:
        server.stop()


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[Hanging]:
    """Give a command that does not end; it is killed with the test."""
    made = Hanging(tmp_path / "hanging")
    yield made
    if made.begun:
        with suppress(ProcessLookupError):
            os.kill(int(made.file.read_text()), signal.SIGKILL)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder with an empty .ssh, and no ssh-agent."""
    folder = tmp_path / "home"
    (folder / ".ssh").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return folder


@pytest.fixture
def runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Virtual rigs of this test have a place of their own: the folder that is returned."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "rigctl"


@pytest.fixture
def name() -> str:
    """A node name of its own: tests that run side by side share the host's lock folder."""
    return f"pi-{secrets.token_hex(4)}"
