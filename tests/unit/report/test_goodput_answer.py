"""The answer of a run of streams is computed from the rows of its table: its rates are there, as they are printed."""

import re
from collections.abc import Callable
from random import Random
from typing import Any

import builders
import pytest
from documents import result_table, rows_of, texts
from hypothesis import given, settings
from hypothesis import strategies as st

from rigctl.findings import Weight
from rigctl.records import Direction, Link, Pair, Repetition, RunInfo
from rigctl.report.document import document

NUMBER = re.compile(r"\d+(?:\.\d+)?")
EVERY = [Pair(f"n{2 * number + 1}", f"n{2 * number + 2}") for number in range(7)]
GIGABIT = {node: Link(10**9, 1500) for pair in EVERY for node in (pair.source, pair.destination)}


def measured(random: Random) -> tuple[RunInfo, list[Repetition]]:
    """A run of up to six tests that differ in one setting, of one to six pairs, with any rates and repetitions."""
    pairs, varied = random.choice([1, 1, 2, 3, 6]), random.choice(["direction", "parallel", "window_bytes", "pairs"])
    rate_mbps, scatter, repeat = (
        random.choice([941, 120, 9.3]),
        random.choice([0.002, 0.05, 0.5]),
        random.choice([1, 3]),
    )
    values: dict[str, Callable[[int], Any]] = {
        "direction": lambda _: random.choice(list(Direction)),
        "parallel": lambda number: number,
        "window_bytes": lambda number: 8192 * 2**number,
        "pairs": lambda _: tuple(EVERY[: random.randint(1, 6)]),
    }
    cells = [
        builders.cell(number, **{"pairs": tuple(EVERY[:pairs]), varied: values[varied](number)})
        for number in range(1, random.randint(2, 7))
    ]
    info = builders.run(builders.plan(cells, links=GIGABIT, repeat=repeat))
    return info, [
        builders.repetition(cell, [rate_mbps * (1 - scatter * random.random()) for _ in cell.streams], number=number)
        for cell in cells
        for number in range(1, repeat + 1)
    ]


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False))
def test_every_number_of_an_answer_is_in_the_table(random: Random) -> None:
    info, repetitions = measured(random)
    answer = next(found.text for found in document(info, repetitions).findings if found.weight is Weight.ANSWER)
    if answer.startswith(("The sum", "From", "With")):
        return  # of the matrix of pairs: in Gbit/s
    printed = " ".join(text for row in rows_of(result_table(info, repetitions)) for text in row.values())
    assert set(NUMBER.findall(answer)) <= {*NUMBER.findall(printed), str(len(info.plan.cells))}


def directions(*rates: tuple[Direction, tuple[float, ...]]) -> str:
    cells = [builders.cell(number, pairs=(EVERY[0],), direction=way) for number, (way, _) in enumerate(rates, 1)]
    info = builders.run(builders.plan(cells, links=GIGABIT))
    return texts(info, [builders.repetition(cell, own) for cell, (_, own) in zip(cells, rates, strict=True)])[0]


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        (
            [(Direction.FORWARD, (939,)), (Direction.REVERSE, (941,)), (Direction.BOTH, (866, 932))],
            "The lowest goodput of a pair is 866 Mbit/s (test 3, both directions: 95.5 % of the ceiling), "
            "the highest 941 Mbit/s (test 2, reverse: 99.9 % of the ceiling, at line rate).",
        ),
        (
            [(Direction.FORWARD, (400,)), (Direction.BOTH, (900, 910))],
            "The lowest goodput of a pair is 400 Mbit/s (test 1, default direction: 42.5 % of the ceiling), "
            "the highest 910 Mbit/s (test 2, both directions: 96.1 % of the ceiling).",
        ),
        (
            [(Direction.FORWARD, (939,)), (Direction.REVERSE, (941,))],
            "Both tests: 939 to 941 Mbit/s, 99.7 to 99.9 % of the ceiling.",
        ),
    ],
)
def test_directions_are_compared_pair_by_pair(rates: list[tuple[Direction, tuple[float, ...]]], said: str) -> None:
    assert directions(*rates) == said
