"""Fixtures with rigs of QEMU machines. The rig `mixed` is shared by all tests."""

from collections.abc import Iterator

import pytest
from machine_lab import Lab, lab


@pytest.fixture(scope="session")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with pytest.MonkeyPatch.context() as patch, lab(tmp_path_factory.mktemp("mixed"), "mixed.yaml", patch) as made:
        yield made


@pytest.fixture(scope="module")
def pis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with pytest.MonkeyPatch.context() as patch, lab(tmp_path_factory.mktemp("pis"), "pis.yaml", patch) as made:
        yield made
