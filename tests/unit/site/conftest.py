"""Fixtures with a store of four nights and its published site."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sites import Site, weeks

from rigctl.store import open_store


@pytest.fixture(scope="session")
def four_nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the store and its site, of which each test gets a copy."""
    folder = tmp_path_factory.mktemp("made")
    with open_store(str(folder / "store.db")) as store:
        weeks(store, range(4))
        Site(store, folder / "site").publish()
    return folder


@pytest.fixture
def published(four_nights: Path, tmp_path: Path) -> Iterator[Site]:
    shutil.copytree(four_nights, tmp_path, dirs_exist_ok=True)
    with open_store(str(tmp_path / "store.db")) as store:
        yield Site(store, tmp_path / "site")
