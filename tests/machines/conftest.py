"""Rigs of machines: one for all tests of a file that share it."""

from collections.abc import Iterator

import pytest
from machine_lab import Lab, lab


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with pytest.MonkeyPatch.context() as patch, lab(tmp_path_factory.mktemp("mixed"), "mixed.yaml", patch) as made:
        yield made


@pytest.fixture(scope="module")
def pis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with pytest.MonkeyPatch.context() as patch, lab(tmp_path_factory.mktemp("pis"), "pis.yaml", patch) as made:
        yield made
