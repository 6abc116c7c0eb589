"""Three weeks of nights, with the clock as an argument: what each morning says, and what a newcomer finds afterwards.

Nights are written into a store as a run writes them, with their noise; what is judged, told and stored is the real
thing, by the commands that a night uses. A real rig with a real slowdown: tests/bench/bench_three_weeks.py.
"""

import contextlib
import io
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import time
from typing import Any, Final
from zoneinfo import ZoneInfo

import builders as make
import pytest

from rigctl.cli.app import exit_code
from rigctl.nightly.message import Message
from rigctl.nightly.night import Done, Judged, Measured, Nightly, one_night
from rigctl.nightly.state import state_of
from rigctl.records import CONFIRMS, NightOutcome, Pair, RunPlan, RunStatus
from rigctl.store import Store, open_store

NODES: Final = ("pi1", "pi2", "pi3")
NIGHTLY: Final = Nightly("mesh", "lab", time(2, 30), ZoneInfo("UTC"))
FIRST_DUE_S: Final = 1_793_500_200.0  # 2026-11-01 02:30 UTC: night 1
DAY_S: Final = 86_400.0
NIGHTS: Final = 21
FAILED, MISSED, HUNG, SLOWER = 5, 9, 12, 15
KERNELS: Final = ("Linux 6.6.31+rpt-rpi-v8 aarch64", "Linux 6.6.51+rpt-rpi-v8 aarch64")


def mesh() -> RunPlan:
    """Each node to each other, one pair after the other, three times."""
    pairs = [Pair(source, destination) for source in NODES for destination in NODES if source != destination]
    cells = [make.cell(number, pairs=(pair,), duration_s=0.5) for number, pair in enumerate(pairs, 1)]
    return make.plan(cells, scenario_name="mesh", rig_name="lab", virtual=None, title="Every host", repeat=2)


@dataclass
class Lab:
    """The rig of `number`'s night, and who is told."""

    store: Store
    address: str
    number: int = 0
    told: dict[int, Message] = field(default_factory=dict)
    noise: random.Random = field(default_factory=lambda: random.Random(20261101))

    def clock(self) -> float:
        return FIRST_DUE_S + (self.number - 1) * DAY_S + 1

    def measure(self) -> Measured:
        if self.number == FAILED:
            return Measured(None, NightOutcome.FAILED, "pi4: connection refused. Is its SSH server running?")
        plan = mesh()
        if self.number == HUNG:
            run = self._run(plan, complete=False)
            return Measured(run, NightOutcome.OVERDUE, "not finished after 12m 00s, so it was ended")
        return Measured(self._run(plan))

    def publish(self) -> None:
        """Nobody wants a site."""

    def judge(self, run: str) -> Judged:
        """As `nightly.commands` does it; the second measurement is written, as the first one is."""
        found = json.loads(self._said("regress", run, "--format", "json"))
        if found["news"] or found["one_night"]:
            again = self._run(mesh(), later_s=600)
            self.store.history.tag(again, {CONFIRMS: run})
            found = json.loads(self._said("regress", run, "--format", "json"))
        if not found["news"]:
            return Judged(False, found["answer"], "")
        return Judged(True, found["answer"], self._said("regress", run, "--format", "md", "--brief"))

    def tell(self, told: Message) -> None:
        self.told[self.number] = told

    def _run(self, plan: RunPlan, later_s: float = 5, *, complete: bool = True) -> str:
        slower = self.number >= SLOWER
        at = FIRST_DUE_S + (self.number - 1) * DAY_S + later_s
        facts = {node: make.facts(kernel=KERNELS[slower and node == "pi3"]) for node in NODES}
        run = self.store.begin(plan, {"rigctl": "0.3.0"}, facts, at)
        for cell in plan.cells if complete else plan.cells[:2]:
            (pair,) = cell.pairs
            level = 941.0 * (0.92 if slower and "pi3" in {pair.source, pair.destination} else 1.0)
            for number in range(1, plan.repeat + 1):
                speed = level * (1 + self.noise.gauss(0, 0.002))
                self.store.add(run, make.repetition(cell, [speed], number=number))
        if complete:
            self.store.finish(run, RunStatus.COMPLETE, at + 60)
        return run

    def _said(self, *words: str) -> str:
        return said(*words, "--store", self.address)


def said(*words: str) -> str:
    """What a command prints, in this process: starting forty of them would take a minute."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert exit_code(list(words)) in {0, 1}, words
    return out.getvalue()


@dataclass
class Weeks:
    lab: Lab
    done: dict[int, Done]

    def title(self, number: int) -> str:
        return self.lab.told[number].title


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Weeks]:
    folder = tmp_path_factory.mktemp("weeks")
    address = str(folder / "store.db")
    with open_store(address) as store:
        lab, done = Lab(store, address), {}
        for lab.number in range(1, NIGHTS + 1):
            if lab.number == MISSED:
                continue
            state = state_of(folder / "state.json", FIRST_DUE_S - DAY_S / 2)
            done[lab.number] = one_night(NIGHTLY, store.history, state, lab, lab.clock)
        yield Weeks(lab, done)


def test_mornings_say_what_they_should_and_nothing_else(weeks: Weeks) -> None:
    assert sorted(weeks.lab.told) == [FAILED, MISSED + 1, HUNG, SLOWER]
    failed = "mesh on lab, 2026-11-05: the night failed: pi4: connection refused. Is its SSH server running?"
    assert weeks.title(FAILED) == failed
    assert weeks.title(MISSED + 1).startswith("mesh on lab, 2026-11-09: the night was missed: it did not begin")
    assert "The night of 2026-11-10 was measured; nothing is new." in weeks.lab.told[MISSED + 1].markdown
    assert weeks.title(HUNG).startswith("mesh on lab, 2026-11-12: the night was ended at its deadline: not finished")
    assert re.search(r"^mesh on lab, 2026-11-15: .*pi3", weeks.title(SLOWER))


def test_the_store_has_all_nights_with_what_became_of_them(weeks: Weeks) -> None:
    nights = weeks.lab.store.history.nights("mesh", "lab")
    expected = dict.fromkeys(range(1, NIGHTS + 1), NightOutcome.QUIET)
    expected |= {FAILED: NightOutcome.FAILED, MISSED: NightOutcome.MISSED, HUNG: NightOutcome.OVERDUE}
    expected |= {SLOWER: NightOutcome.NEWS}
    assert [night.outcome for night in nights] == list(expected.values())
    assert [night.due_at for night in nights] == [FIRST_DUE_S + at * DAY_S for at in range(NIGHTS)]


def test_the_message_names_the_node_the_size_and_what_changed_with_it(weeks: Weeks) -> None:
    text = weeks.lab.told[SLOWER].markdown
    assert "pi3" in text
    assert re.search(r"[−-] ?(7|8)(\.\d)? ?%|(7|8)(\.\d)? % (slower|lower|less|below)", text)
    assert "6.6.31" in text
    assert "6.6.51" in text
    assert len(text) < 65_536


def test_a_newcomer_finds_the_night_and_its_cause_a_week_later(weeks: Weeks) -> None:
    found: dict[str, Any] = json.loads(said("regress", "--format", "json", "--store", weeks.lab.address))
    assert found["news"] == []
    assert {own["subject"]["node"] for own in found["changes"]} == {"pi3"}
    kernel = {"node": "pi3", "fact": "kernel", "before": KERNELS[0], "after": KERNELS[1]}
    for change in found["changes"]:
        assert change["since_at"].startswith("2026-11-15")
        assert -10 < change["change_pct"] < -6
        assert change["confirmed"]
        assert kernel in change["facts"]
    shown = said("regress", "--store", weeks.lab.address)
    assert "pi3" in shown
    assert "2026-11-15" in shown or "15 Nov" in shown
