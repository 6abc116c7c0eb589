"""Unit tests open no socket to anywhere and start no process: whoever tries is told so."""

import asyncio
import gc
import os
import socket
import subprocess
from collections.abc import Iterator

import pytest

_NEW_OBJECTS = 50_000
"""So many make Python look for garbage, in place of 700: records of whole runs are none."""


def pytest_collection_finish() -> None:
    """Leave all that was imported out of the search for garbage, which takes a tenth of the time otherwise."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)


def _forbidden(what: str) -> object:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError(f"a unit test must not {what}: it belongs in tests/integration")

    return refuse


@pytest.fixture(autouse=True, scope="package")
def _no_process_and_no_network() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", _forbidden("start a process"))
        patch.setattr(os, "posix_spawn", _forbidden("start a process"))
        patch.setattr(asyncio, "create_subprocess_exec", _forbidden("start a process"))
        for name in ("connect", "bind", "listen"):
            patch.setattr(socket.socket, name, _forbidden(f"{name} a socket"))
        yield
