"""Parts of a scenario: what they make of a plan, which options hold for them, and the mistakes in them."""

import re
from pathlib import Path

from cases import from_file
from planning import message_of, planned

from rigctl.records import Cell
from rigctl.scenario.load import Overrides
from rigctl.settings import PARALLEL, RATE, SIZE

RIG = "rig: gigablox\n"
THREE = """\
title: Three
duration: 2s
parts:
  plain:
    pairs: [pi1 -> pi2, pi3 -> pi4]
    matrix: {parallel: [1, 2]}
    expect: {tests: 2, goodput: '> 1M'}
  classes:
    duration: 8s
    classes:
      a: {test: udp, rate: 10M, size: 1000}
      b: {pairs: [pi3 -> pi4], stop: 50%}
    pairs: [pi1 -> pi2]
    expect: [{a.loss: < 1%}, {a.after.loss: < 2%}]
  sizes: {test: udp, pairs: [pi1 -> pi2], rate: 50%, matrix: {size: [18, 1472]}, omit: 1s}
"""


def seen(cell: Cell) -> tuple[object, ...]:
    return cell.number, cell.part, cell.traffic_class, cell.group, cell.test, cell.duration_s, cell.omit_s


def test_the_tests_of_a_part_follow_those_of_the_part_before(tmp_path: Path) -> None:
    plan = planned(tmp_path, f"{THREE}capture: [2, 5]", head=RIG)
    assert [seen(cell) for cell in plan.cells] == [
        (1, "plain", None, None, "tcp", 2.0, 0.0),
        (2, "plain", None, None, "tcp", 2.0, 0.0),
        (3, "classes", "a", 3, "udp", 8.0, 0.0),
        (4, "classes", "b", 3, "tcp", 8.0, 0.0),
        (5, "sizes", None, None, "udp", 2.0, 1.0),
        (6, "sizes", None, None, "udp", 2.0, 1.0),
    ]
    assert plan.parts == ("plain", "classes", "sizes")
    assert [cell.stop_s for cell in plan.cells][3] == 4.0
    assert [cell.number for cell in plan.cells if cell.capture] == [2, 5]
    assert plan.cells[5][RATE] == 478_543_563  # half of each size's own ceiling
    assert [(own.name, own.tests) for own in plan.expectations][:2] == [("goodput", (2,)), ("loss", (3,))]
    assert [own.tests for own in plan.expectations][2:] == [(3,)]


def test_the_plan_of_a_part_is_that_of_a_scenario_of_its_own_but_for_the_numbers(tmp_path: Path) -> None:
    part = planned(tmp_path, THREE, head=RIG).of_part("sizes")
    text = "test: udp\npairs: [pi1 -> pi2]\nrate: 50%\nmatrix: {size: [18, 1472]}\nomit: 1s\nduration: 2s"
    alone = planned(tmp_path, text, head=RIG)
    strip = [(cell.part, cell.settings, cell.pairs, cell.message_bytes, cell.duration_s) for cell in part.cells]
    assert strip == [(None, cell.settings, cell.pairs, cell.message_bytes, cell.duration_s) for cell in alone.cells]
    assert [cell.number for cell in part.cells] == [5, 6]


@from_file
def test_a_mistake_in_parts_is_told_at_its_place(tmp_path: Path, text: str, expected: str) -> None:
    told = message_of(tmp_path, f"{RIG}{text}")
    assert told.startswith(f"t.yaml:{expected}"), told
    assert told.count("t.yaml:") == 1, told


def test_the_mistakes_of_all_parts_are_told_at_once(tmp_path: Path) -> None:
    single = "parts:\n  a: {pairs: [pi1 -> pi2], mss: 1}\n  b: {pairs: [pi1 -> pi2], parallel: 0}\nrepeat: 0\n"
    between = "parts:\n  a: {pairs: [pi1 -> pi9]}\n  b: {pairs: [pi1 -> pi8]}\n"
    conflicts = "parts:\n  a: {pairs: [pi1 -> pi2], size: 1}\n  b: {pairs: [pi1 -> pi2], size: 1}\n"
    for text, places in ((single, "3:33 4:38 5:9"), (between, "3:15 4:15"), (conflicts, "3:34 4:34")):
        told = message_of(tmp_path, f"{RIG}{text}")
        assert " ".join(re.findall(r"^t\.yaml:(\S+): ", told, re.MULTILINE)) == places


def test_an_option_holds_for_each_part_that_has_what_it_changes(tmp_path: Path) -> None:
    plan = planned(tmp_path, THREE, "parallel=4", "size=64,128", "omit=0s", head=RIG, duration="900ms", repeat=2)
    assert [(cell.part, cell[PARALLEL], cell[SIZE]) for cell in plan.cells] == [
        ("plain", 4, None),
        ("classes", 1, 1000),
        ("classes", 1, None),
        ("sizes", 1, 64),
        ("sizes", 1, 128),
    ]
    assert {cell.duration_s for cell in plan.cells} == {0.9}
    assert plan.repeat == 2


SIZES = "parts:\n  a: {test: udp, size: 64, rate: 1M, pairs: [pi1 -> pi2]}\n  b: {pairs: [pi1 -> pi2], parallel: 2}\n"


@from_file
def test_an_option_that_holds_for_no_part_is_refused(tmp_path: Path, option: str, expected: str) -> None:
    assert message_of(tmp_path, f"{RIG}{SIZES}", Overrides(sets=(option,))).startswith(expected)


def test_a_comparison_of_variants_is_refused(tmp_path: Path) -> None:
    told = message_of(tmp_path, f"{RIG}{SIZES}", Overrides(against="parallel=4", repeat=4))
    assert told.startswith("--against parallel=4: not for a scenario with parts.")
