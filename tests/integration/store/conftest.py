"""Fixtures for store tests, which run on SQLite and on a real PostgreSQL server that is started once per worker."""

from collections.abc import Iterator
from pathlib import Path

import builders
import postgres
import pytest

from rigctl.store import Store, open_store


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    with postgres.server() as started:
        yield started


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a store that does not exist yet, for each kind of database."""
    if request.param == "sqlite":
        return str(tmp_path / "r.db")
    started: postgres.Server = request.getfixturevalue("server")
    return started.url(started.emptied())


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with open_store(address) as opened:
        yield opened


@pytest.fixture
def run(store: Store) -> str:
    """A run that has begun, with the seven cells of `builders`."""
    return store.begin(builders.plan(), {}, {}, 0.0)
