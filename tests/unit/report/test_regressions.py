import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import builders as make
import many_nights as nightly
import pytest

from rigctl.analysis.nights.figures import GOODPUT, Subject
from rigctl.analysis.nights.history import Nights, NightSeries
from rigctl.analysis.nights.regressions import Regressions
from rigctl.analysis.nights.setup_changes import SetupChange, Source
from rigctl.analysis.nights.shifts import Shift, Suspected
from rigctl.cli.commands.regress import regress_json
from rigctl.findings import Severity
from rigctl.model.statistics.changes import Change, Point, Rules, Suspicion
from rigctl.records import Pair
from rigctl.report import regressions
from rigctl.report.blocks import Document, Row, Table
from rigctl.report.regressions import as_junit, as_markdown, document, facts_text, name

RUN = make.run(nightly.mesh_plan(("a", "b", "c")))
KERNEL = SetupChange(Source.FACT, "kernel", "6.6", "6.12", ("a",))


def series(number: int = 1, points: int = 8, **subject: Any) -> NightSeries:
    cell = make.cell(number, pairs=(Pair("a", "b"),))
    return NightSeries(Subject(str(number), GOODPUT, **subject), cell, (number,), (Point(900.0),) * points)


def shift(ratio: float = 0.95, number: int = 1, facts: Sequence[SetupChange] = (), **subject: Any) -> Shift:
    return Shift(series(number, **subject), Change(6, 7, 900.0, 900.0 * ratio, 0.002), RUN, tuple(facts))


def found(*news: Shift, **fields: Any) -> Regressions:
    nights = Nights((RUN,) * 8, {}, tuple(own.series for own in news) or (series(),))
    return replace(Regressions(RUN, nights, Rules(), news, judged=len(nights.series)), **fields)


SUSPECTED = Suspected(series(), Suspicion(850.0, 900.0, 0.002, confirmed=False))


@pytest.mark.parametrize(
    ("fields", "answer", "row"),
    [
        ({}, "No change found in 1 test.", None),
        ({"judged": 0, "too_few": 1}, "Nothing can be said yet", None),
        ({"standing": (shift(),)}, "1 earlier change not accepted", ("−5.0", "900 → 855", "2026-11-20")),
        ({"suspected": (SUSPECTED,)}, "; 1 figure differs in", ("−5.6", "900 → 850", "this night only")),
    ],
)
def test_a_night_without_news_has_one_sentence(
    fields: dict[str, Any], answer: str, row: tuple[str, ...] | None
) -> None:
    made = document(found(**fields))
    assert answer in made.answer
    assert made.findings[0].level is Severity.OK
    assert [own.entries[0].text for own in rows_of(made)] == (["a → b, test 1"] if row else [])
    assert [tuple(entry.text for entry in own.entries[1:4]) for own in rows_of(made)] == ([row] if row else [])


def rows_of(made: Document) -> Sequence[Row]:
    tables = [block for section in made.results for block in section.blocks if isinstance(block, Table)]
    return tables[0].rows if tables else ()


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ([900, 901, 899, None, 855, 855], "▇▇▇–▂▂"),
        ([900, 903, 900, 899], "▄▅▄▄"),  # noise below the bound of 2 %
        ([900, 450], "█▁"),
        ([900] * 20, "▅" * 14),
        ([None, None], "–"),
    ],
)
def test_the_last_nights_are_drawn_as_blocks(values: list[float | None], drawn: str) -> None:
    own = replace(series(), points=tuple(Point(value) for value in values))
    nights = Nights((RUN,) * len(values), {}, (own,))
    change = replace(shift(), series=own)
    made = document(Regressions(RUN, nights, Rules(), (), (change,), judged=1))
    assert rows_of(made)[0].entries[-1].text == drawn


def test_what_changed_is_said_once_in_the_answer_or_below_the_table() -> None:
    other = replace(KERNEL, name="mtu", before=1500, after=9000)
    made = document(found(shift(0.9, 1, [KERNEL]), shift(0.95, 2, [KERNEL, other])))
    assert "Changed before that run: kernel 6.6 → 6.12 on a" in made.answer
    (table,) = made.results[0].blocks
    assert isinstance(table, Table)
    assert table.notes == ("Changed just before: MTU 1500 → 9000 on a.",)
    assert [row.notes for row in table.rows] == [(), (1,)]
    assert made.findings[1].text == f"To accept: `rigctl accept {RUN.run} --because TEXT`"


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ({"node": "a", "role": "sending"}, "a as sender"),
        ({"node": "b", "role": "receiving"}, "b as receiver"),
        ({}, "a → b, test 3"),
    ],
)
def test_a_series_is_named_by_its_node_its_pair_or_its_test(subject: dict[str, Any], expected: str) -> None:
    assert name(series(3, **subject)) == expected


def test_the_same_change_on_several_nodes_is_said_once_and_many_are_counted() -> None:
    everywhere = replace(KERNEL, where=tuple("abcd"), everywhere=True)
    others = [SetupChange(Source.FACT, f"net.ipv4.x{number}", "0", "1", ("a",)) for number in range(5)]
    speed = SetupChange(Source.FACT, "speed_bps", 10**9, 10**8, ("b",))
    assert facts_text([speed, everywhere, *others]) == (
        "link speed 1 Gbit/s → 100 Mbit/s on b, kernel 6.6 → 6.12 on 4 nodes, net.ipv4.x0 0 → 1 on a and 4 more"
    )
    assert facts_text([]) == ""


def test_json_has_what_changed_once_for_each_node() -> None:
    facts = [
        replace(KERNEL, where=("a", "b"), everywhere=True),
        SetupChange(Source.RIG, "link mtu", 1500, 9000, ("c",)),
        SetupChange(Source.RIG, "rig_yaml", "12ab", "34cd"),
        SetupChange(Source.TAG, "firmware", None, "1.2"),
    ]
    (level,) = json.loads(regress_json(found(shift(facts=facts))))["news"]
    assert [tuple(fact.values()) for fact in level["facts"]] == [
        ("a", "kernel", "6.6", "6.12"),
        ("b", "kernel", "6.6", "6.12"),
        ("c", "rig file: mtu", 1500, 9000),
        (None, "rig file", "12ab", "34cd"),
        (None, "tag firmware", "", "1.2"),
    ]


def shared(count: int, every: int, ratios: Sequence[float], facts: Sequence[SetupChange] = ()) -> str:
    """The answer where `count` of `every` tests changed."""
    news = [shift(ratios[number % len(ratios)], number, facts) for number in range(1, count + 1)]
    nights = Nights((RUN,) * 8, {}, tuple(series(number) for number in range(1, every + 1)))
    return document(replace(found(*news), nights=nights)).answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            shared(12, 12, [0.942, 0.936, 0.94], [KERNEL]),
            "All 12 tests: goodput 5.8–6.4 % below the level before 2026-11-20. "
            "Changed before that run: kernel 6.6 → 6.12 on a.",
        ),
        (
            shared(9, 12, [0.94]),
            "9 of 12 tests: goodput 6.0 % below the level before 2026-11-20. "
            "Nothing that is recorded changed for all of them: look at what they share, as the switch.",
        ),
        (
            shared(2, 2, [0.94]),
            "a → b, test 1: goodput 846 Mbit/s, 6.0 % below the level before 2026-11-20 (900 Mbit/s). "
            "1 more change below.",
        ),
    ],
)
def test_what_most_pairs_share_is_one_sentence(answer: str, said: str) -> None:
    assert answer == said


@pytest.mark.parametrize(("brief", "bound"), [(True, "MOST_BRIEF"), (False, "MOST_CHARACTERS")])
def test_markdown_is_bounded_and_names_what_is_gone(brief: bool, bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    count, most = 400, 20_000
    monkeypatch.setattr(regressions, bound, most)
    names = [f"net.ipv4.some_setting_{number}" for number in range(3)]
    facts = [SetupChange(Source.FACT, setting, "0" * 30, "1" * 30, ("a",)) for setting in names]
    text = as_markdown(found(*[shift(0.9, number, facts) for number in range(1, count + 1)]), brief=brief)
    assert most / 20 < len(text.encode()) < most
    assert " more: " in text
    assert "test 1 |" in text
    assert f"test {count} " not in text


def test_names_in_markdown_are_no_markup() -> None:
    fact = SetupChange(Source.TAG, "note", None, "<img src=x>|*")
    assert "\\<img src=x\\>\\|\\*" in as_markdown(found(shift(facts=[fact])))


def test_junit_has_a_case_for_each_series_and_only_what_is_worse_has_failed() -> None:
    absent = replace(series(4), points=(Point(900.0), Point(None)))
    nights = Nights((RUN,) * 8, {}, (series(1), series(2), series(3), absent))
    worse, better = replace(shift(0.9), series=nights.series[0]), replace(shift(1.1), series=nights.series[1])
    root = ElementTree.fromstring(as_junit(found(worse, better, nights=nights)))
    assert [root[0].get(name) for name in ("tests", "failures", "skipped")] == ["4", "1", "1"]
    failed = root.find(".//failure")
    assert failed is not None
    assert "10.0 % below" in (failed.get("message") or "")
    assert len(root.findall(".//skipped")) == 1
