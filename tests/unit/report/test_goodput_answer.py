"""The answer of a run is computed from the rows of its tables: its numbers are there, as they are printed."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from random import Random
from typing import Any

import builders
import message_runs
import pytest
from documents import texts
from hypothesis import given, settings
from hypothesis import strategies as st
from meshes import NODES, mesh_run, messages_between

from rigctl.findings import Weight
from rigctl.records import Direction, Link, Pair, Repetition, RunInfo
from rigctl.report.document import document
from rigctl.report.printers.json import whole

NUMBER = re.compile(r"\d+(?:\.\d+)?")
EVERY = [Pair(f"n{2 * number + 1}", f"n{2 * number + 2}") for number in range(7)]
GIGABIT = {node: Link(10**9, 1500) for pair in EVERY for node in (pair.source, pair.destination)}


def streams(random: Random) -> tuple[RunInfo, list[Repetition]]:
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


def datagrams(random: Random) -> tuple[RunInfo, list[Repetition]]:
    """Some sizes, each at some rates, with any loss or none."""
    each: Any = {"test": "udp", "transport": "udp", "pairs": (Pair("a", "b"),)}
    sizes = random.sample([64, 128, 512, 1250, 1472], random.randint(1, 5))
    rates = [(size, rate) for size in sizes for rate in range(1, random.randint(2, 4))]
    cells = [
        builders.cell(number, message_bytes=size, rate=rate * 10**8, **each)
        for number, (size, rate) in enumerate(rates, 1)
    ]
    measured = []
    for cell, (_, rate) in zip(cells, rates, strict=True):
        sent = 10_000 * rate
        flow = builders.datagram_flow(sent, sent - random.choice([0, 0, 3, 700]), duplicates=0, reordered=0, overflow=0)
        measured.append(replace(builders.repetition(cell, (1.0,)), flows=(flow,)))
    links = dict.fromkeys(("a", "b"), Link(10**9, 1500))
    return builders.run(builders.plan(cells, links=links, virtual=None), facts={}), measured


def messages(random: Random) -> tuple[RunInfo, list[Repetition]]:
    """Ping-pong or blast of some sizes."""
    test, sizes = random.choice(["pingpong", "blast"]), random.sample([1, 64, 1024, 7168, 65536], random.randint(1, 5))
    rows = [(size, 100, tuple(random.uniform(0.001, 2.0) for _ in range(5))) for size in sorted(sizes)]
    return message_runs.measured(test, rows)


def mesh(random: Random) -> tuple[RunInfo, list[Repetition]]:
    """Four nodes with any goodput, or any round trips."""
    if random.random() < 0.3:
        return messages_between("pingpong", {ends: random.uniform(0.001, 0.1) for ends in permutations(NODES, 2)})
    slow = random.choice([*NODES, ""])
    return mesh_run({ends: random.uniform(1000, 9400) for ends in permutations(NODES, 2) if slow in ends})


@pytest.mark.parametrize("made", [streams, datagrams, messages, mesh])
@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False))
def test_every_number_of_an_answer_is_in_the_table(
    made: Callable[[Random], tuple[RunInfo, list[Repetition]]], random: Random
) -> None:
    info, repetitions = made(random)
    report = document(info, repetitions)
    answer = next(found for found in report.findings if found.weight is Weight.ANSWER)
    counts = {str(number) for number in range(len(info.plan.cells) + len(info.plan.links) + 1)}
    printed = json.dumps([*whole(report)["results"], *whole(report)["sections"][:2]], ensure_ascii=False)
    sizes = {str(size // 1024) for cell in info.plan.cells if (size := cell.message_bytes or 0) >= 1024}
    stated = re.sub(r"\([\d,]+( packets/s)?\)", "", answer.text)  # packets per second follow from rate and size
    assert {*NUMBER.findall(stated)} <= {*NUMBER.findall(printed)} | counts | sizes
    assert len(answer.text) <= 160
    assert 0 < len(answer.brief) <= 48
    assert not answer.text.endswith(".")


def directions(*rates: tuple[Direction, tuple[float, ...]]) -> str:
    cells = [builders.cell(number, pairs=(EVERY[0],), direction=way) for number, (way, _) in enumerate(rates, 1)]
    info = builders.run(builders.plan(cells, links=GIGABIT))
    return texts(info, [builders.repetition(cell, own) for cell, (_, own) in zip(cells, rates, strict=True)])[0]


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        (
            [(Direction.FORWARD, (939,)), (Direction.REVERSE, (941,)), (Direction.BOTH, (866, 932))],
            "Line rate in 2 of 3 tests (939–941 Mbit/s); 866–932 in test 3 (both directions)",
        ),
        (
            [(Direction.FORWARD, (400,)), (Direction.BOTH, (900, 910))],
            "400 Mbit/s in test 1 (forward), up to 900–910 in test 2 (both directions)",
        ),
        (
            [(Direction.FORWARD, (939,)), (Direction.REVERSE, (941,))],
            "Line rate in both tests (939–941 Mbit/s)",
        ),
    ],
)
def test_directions_are_compared_pair_by_pair(rates: list[tuple[Direction, tuple[float, ...]]], said: str) -> None:
    assert directions(*rates) == said
