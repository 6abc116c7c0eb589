"""Unit tests open no socket to anywhere and start no process: whoever tries is told so."""

import asyncio
import os
import socket
import subprocess

import pytest


def _forbidden(what: str) -> object:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError(f"a unit test must not {what}: it belongs in tests/integration")

    return refuse


@pytest.fixture(autouse=True)
def _no_process_and_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess.Popen, "__init__", _forbidden("start a process"))
    monkeypatch.setattr(os, "posix_spawn", _forbidden("start a process"))
    monkeypatch.setattr(asyncio, "create_subprocess_exec", _forbidden("start a process"))
    for name in ("connect", "bind", "listen"):
        monkeypatch.setattr(socket.socket, name, _forbidden(f"{name} a socket"))
