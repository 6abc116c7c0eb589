from dataclasses import replace
from typing import TypeAlias

import builders
import pytest
from documents import texts

from rigctl.model.contract import departures
from rigctl.records import Numa, Pair, Repetition, RunInfo
from rigctl.settings.setting import Counts

Samples: TypeAlias = tuple[tuple[int, int], ...]
APART = "Sender and card of pi1 are on different NUMA nodes, 0 and 1: test 1."
SHARED = "Two flows share processor 3 of pi1: test 1."


def placed(asked: str | None, sender: Samples, numa: Numa | None = None) -> tuple[RunInfo, list[Repetition]]:
    """Return a run of two flows whose senders ran on these processors, each with its count of samples."""
    cell = builders.cell(pairs=(Pair("pi1", "pi2"),), parallel=2, placement=asked)
    counted = {"processors": Counts(sender), "numa": numa or Numa()}
    one = builders.changing_flows(builders.repetition(cell, (400.0,)), sender=counted)
    return builders.run(builders.plan([cell])), [one]


@pytest.mark.parametrize(
    ("asked", "card", "told"),
    [
        ("3", 1, True),
        ("3/scheduler", 1, True),
        ("scheduler/3", 1, False),
        ("3", 0, False),
        ("3", None, False),
        (None, 1, False),
    ],
)
def test_a_sender_on_another_node_than_its_card_is_told(asked: str | None, card: int | None, told: bool) -> None:
    said = texts(*placed(asked, ((2, 1), (3, 98)), Numa(0, card)))
    assert any(text.startswith(APART) for text in said) is told
    assert any("different NUMA nodes" in text for text in said) is told


@pytest.mark.parametrize(
    ("asked", "sender", "told"),
    [("3", ((3, 98), (2, 2)), True), (None, ((3, 100),), False), ("2-3", ((3, 50), (2, 50)), False)],
)
def test_flows_that_share_a_processor_are_told(asked: str | None, sender: Samples, told: bool) -> None:
    said = texts(*placed(asked, sender))
    assert any(text.startswith(SHARED) for text in said) is told
    assert any("share processor" in text for text in said) is told


@pytest.mark.parametrize(
    ("asked", "numa", "effective"),
    [
        ("3", Numa(), None),
        ("2-3", Numa(), None),
        ("2", Numa(), "3: 100 %"),
        ("packets", Numa(), None),
        ("nic", Numa(0, 0), None),
        ("nic", Numa(0, None), None),
        ("nic", Numa(0, 1), "3: 100 %"),
        ("scheduler/2", Numa(), None),
    ],
)
def test_a_flow_elsewhere_than_asked_is_a_departure(asked: str, numa: Numa, effective: str | None) -> None:
    info, (repetition,) = placed(asked, ((3, 100),), numa)
    found = [departure.effective for departure in departures(info.plan.cells[0], repetition.flows)]
    assert found == ([] if effective is None else [effective])


@pytest.mark.parametrize(
    ("granted", "said"),
    [
        (
            "256 -> 64 (100000 was asked for)",
            "100000 was requested; 64 is in effect on a and b.",
        ),
        ("1500 -> 9000", None),
        (
            "pfifo limit 10 -> fq limit 100 (fq limit 99 was asked for)",
            "fq limit 99 was requested; fq limit 100 is",
        ),
    ],
)
def test_a_host_setting_that_was_rounded_is_told(granted: str, said: str | None) -> None:
    info, repetitions = placed(None, ((0, 100),))
    facts = {node: builders.facts() | {"condition deep": {"ring rx": granted}} for node in ("a", "b")}
    found = [text for text in texts(replace(info, facts=facts), repetitions) if text.startswith("Condition deep")]
    assert [f"Condition deep: ring rx {said}" in text for text in found] == ([True] if said else [])
