"""Hooks that keep unit tests from using sockets and processes, and from waiting for a disk."""

import asyncio
import gc
import os
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from rigctl.store import open as store_open

_NEW_OBJECTS = 50_000
"""Number of new objects after which Python collects garbage, instead of 700, because large records are no garbage."""


def pytest_collection_finish() -> None:
    """Exclude imported modules from garbage collection, which otherwise takes a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)


def _forbidden(what: str) -> object:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError(f"a unit test must not {what}: it belongs in tests/integration")

    return refuse


def _unsafe(connection: sqlite3.Connection, record: object, prepare: Any = store_open._prepare_sqlite) -> None:
    """Do not wait for the disk at each of thousands of commits; tests need not survive a power failure."""
    prepare(connection, record)
    connection.execute("PRAGMA synchronous = OFF")


@pytest.fixture(autouse=True, scope="module")  # without __init__.py, scope "package" is the session
def _no_process_no_network_and_no_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", _forbidden("start a process"))
        patch.setattr(os, "posix_spawn", _forbidden("start a process"))
        patch.setattr(asyncio, "create_subprocess_exec", _forbidden("start a process"))
        for name in ("connect", "bind", "listen"):
            patch.setattr(socket.socket, name, _forbidden(f"{name} a socket"))
        patch.setattr(store_open, "_prepare_sqlite", _unsafe)
        yield
