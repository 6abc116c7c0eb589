"""pytest that fails where a link is slower than link.yaml expects: `RIG=mylab.yaml pytest test_link.py` for yours."""

import os
from pathlib import Path

import pytest

import rigctl


@pytest.fixture(scope="module")
def measured() -> rigctl.Run:
    rig, changes = os.environ.get("RIG"), os.environ.get("RIG_SET", "").split()
    scenario = rigctl.load(Path(__file__).with_name("link.yaml"), rig, rig_sets=changes)
    return rigctl.run(scenario, store="runs.db")


def test_the_link_is_as_expected(measured: rigctl.Run) -> None:
    missed = [verdict for verdict in measured.report.verdicts if not verdict.met]
    assert not missed, "\n".join(f"{verdict.figure} {verdict.measured}, {verdict.expected}" for verdict in missed)


def test_every_repetition_counts(measured: rigctl.Run) -> None:
    pairs = measured.frames.pairs
    assert pairs["counted"].all()
