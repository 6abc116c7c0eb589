"""Each test of a store runs on SQLite and on a real PostgreSQL server; the server is started once per worker."""

from collections.abc import Iterator
from pathlib import Path

import postgres
import pytest

from rigctl.store import Store, open_store


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    with postgres.server() as started:
        yield started


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a store that is not there yet, in each kind of database."""
    if request.param == "sqlite":
        return str(tmp_path / "r.db")
    started: postgres.Server = request.getfixturevalue("server")
    return started.url(started.emptied())


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with open_store(address) as opened:
        yield opened
