"""Datagrams in rows, table and words; and the search for the highest rate, trial by trial."""

from dataclasses import replace
from typing import Any

import builders
import pytest

from rigctl.analysis.datagram_rows import datagram_values
from rigctl.analysis.frames import load
from rigctl.analysis.rows import derive
from rigctl.analysis.summary import summaries
from rigctl.model.search import MOST_TRIALS, Search, decided, search
from rigctl.records import (
    MAX_RATE,
    Cell,
    Datagrams,
    DatagramSettings,
    Flow,
    Link,
    Pair,
    Repetition,
    RunInfo,
    RunPlan,
    Side,
    Status,
)
from rigctl.report.printers.html import render
from rigctl.report.sections.datagrams import loss_words, search_table, search_words, shaping_words
from rigctl.report.sections.streams.comparison import comparison
from rigctl.report.sections.streams.words import explain

PAIR = Pair("a", "b")
SECOND = 10**9
CELL = Cell(1, "udp", (PAIR,), 1.0, 0.0, 1, transport="udp", message_bytes=1250, datagrams=DatagramSettings(10**8))


def plan_of(*cells: Cell) -> RunPlan:
    return replace(
        builders.plan(cells), links=dict.fromkeys(("a", "b"), Link(10**9, 1500)), virtual=None, max_loss=0.001
    )


def info_of(*cells: Cell) -> RunInfo:
    return replace(builders.run(plan_of(*cells)), facts={})


def flow(sent: int, came: int, burst: int = 1, **more: Any) -> Flow:
    """A second of datagrams of 1250 bytes: so many were sent, so many came, `burst` at most missing in a row."""
    there = Datagrams(sent, refused=more.get("refused", 0))
    counts: dict[str, Any] = {
        "duplicates": 0,
        "reordered": 0,
        "overflow": 0,
        "jitter_ns": 5000,
        "jitter_max_ns": 9000,
    } | more
    counts.pop("refused", None)
    here = Datagrams(came, highest=more.get("highest", sent), **{k: v for k, v in counts.items() if k != "highest"})
    lost = ((burst, 1),) if came < sent else ()
    return Flow(
        PAIR,
        CELL.direction,
        1,
        Side(sent * 1250, SECOND, 2 * SECOND, datagrams=there),
        Side(came * 1250, SECOND, 2 * SECOND, histogram=lost, datagrams=here),
        bytes=came * 1250,
    )


def measured(one: Flow, repetition: int = 1, rate_bps: int | None = None, status: Status = Status.OK) -> Repetition:
    return Repetition(
        1, repetition, 1, status, None if status is Status.OK else "why", 0.0, 1.0, SECOND, 2 * SECOND, 10.0, 5.0,
        rate_bps=rate_bps, flows=(one,),
    )  # fmt: skip


def test_what_was_lost_is_what_was_sent_and_did_not_come() -> None:
    values = datagram_values([flow(10_000, 9990, burst=7, reordered=3, duplicates=2, overflow=4, refused=5)])
    assert (values["datagrams_sent"], values["datagrams_lost"], values["loss_burst_max"]) == (10_000, 10, 7)
    assert values["loss_pct"] == pytest.approx(0.1)
    assert (values["reordered"], values["duplicates"], values["sender_drops"], values["receiver_drops"]) == (3, 2, 5, 4)
    assert (values["jitter_us"], values["jitter_max_us"]) == (5.0, 9.0)
    assert values["sent_mbps"] == pytest.approx(100.0)


def test_what_is_missing_at_the_end_is_a_loss_in_a_row_too() -> None:
    assert datagram_values([flow(10_000, 9950, burst=10, highest=9960)])["loss_burst_max"] == 40


def test_a_side_that_is_not_known_leaves_sums_unknown() -> None:
    whole = flow(1000, 1000)
    values = datagram_values([whole, replace(whole, receiver=None)])
    assert (values["datagrams_sent"], values["datagrams_lost"], values["loss_pct"]) == (2000, None, None)
    assert values["reordered"] is None
    assert set(datagram_values([]).values()) == {None}


def test_rows_have_the_ceiling_of_the_datagram_and_the_rate_that_binds() -> None:
    rows = derive(info_of(CELL), [measured(flow(10_000, 9990))])
    (cell,), (flow_row,) = rows.cells, rows.flows
    assert cell["ceiling_mbps"] == pytest.approx(1000 * 1250 / (1250 + 28 + 38))
    assert (cell["limit"], cell["rate_mbps"], cell["transport"]) == ("rate", 100.0, "udp")
    assert cell["goodput_mbps"] == pytest.approx(99.9)
    assert (cell["datagrams_lost"], flow_row["datagrams_lost"], flow_row["messages"]) == (10, 10, None)


def test_the_table_has_loss_and_order_in_place_of_what_tcp_has() -> None:
    cells = summaries(load(info_of(CELL), [measured(flow(10_000, 9990, burst=7))]))
    table = comparison(cells)
    row = dict(zip((column.title for column in table.columns), table.rows[0].cells, strict=True))
    assert (row["Datagram"], row["Rate of a flow"], row["Loss"], row["Lost in a row, at most"]) == (
        "1250", "100", "0.1", "7",
    )  # fmt: skip
    assert not {"Retransmits", "Effective MSS"} & row.keys()


def test_losses_are_told_with_whose_they_are() -> None:
    info = info_of(CELL)
    cells = summaries(load(info, [measured(flow(10_000, 9990, burst=7, overflow=4, refused=5, reordered=2))]))
    said = " ".join(explain(info, cells[0]))
    assert "10 of 10000 datagrams were lost, 0.1 %, at most 7 in a row." in said
    assert "refused 5 more" in said
    assert "full socket buffers dropped 4" in said
    assert "2 came out of order." in said
    assert loss_words(cells)[0] == "Datagrams were lost in 1 of 1 test, most in test 1: 0.1 %."
    assert "In test 1 socket buffers of receivers were full" in loss_words(cells)[1]


def test_a_sender_that_cannot_keep_up_is_told() -> None:
    info = info_of(CELL)
    cells = summaries(load(info, [measured(flow(5000, 5000))]))
    said = " ".join(explain(info, cells[0]))
    assert "100 Mbit/s were asked for on each pair; the slowest sender brought out 50.0" in said
    assert "All 5000 datagrams arrived." in said
    assert loss_words(cells) == ["No datagram was lost in any test."]


def test_a_virtual_link_carries_more_of_small_datagrams_and_that_is_said() -> None:
    small = replace(CELL, message_bytes=128)
    info = info_of(small)
    assert shaping_words(info) == []
    virtual = replace(info, plan=replace(info.plan, virtual="namespaces"))
    assert "741.2 of 128 bytes, where a wire carries 659.8" in shaping_words(virtual)[0]


class Path:
    """A path that carries `capacity` bit/s and drops what is more; the sender brings out `most`."""

    def __init__(self, capacity: float, most: float, loss: float = 0.0) -> None:
        self.capacity, self.most, self.loss = capacity, most, loss

    def trial(self, number: int, rate_bps: int | None) -> Repetition:
        sent_bps = self.most if rate_bps is None else min(rate_bps, self.most)
        sent = round(sent_bps / 8 / 1250)
        came = min(int(sent * (1 - self.loss)), round(self.capacity / 8 / 1250))
        return measured(flow(sent, came), number, rate_bps)


def searched(path: Path) -> tuple[RunPlan, list[Repetition], Search]:
    cell = builders.asking(CELL, rate=MAX_RATE)
    plan = plan_of(cell)
    trials = [path.trial(1, None)]
    while (following := search(plan, cell, trials).following) is not None:
        trials.append(path.trial(len(trials) + 1, following))
    return plan, trials, search(plan, cell, trials)


@pytest.mark.parametrize("capacity", [3e6, 4.7e7, 6.5e8, 9e8])
def test_the_search_comes_within_a_hundredth_of_what_the_path_carries(capacity: float) -> None:
    _, trials, found = searched(Path(capacity, 2e9))
    assert found.best is not None
    assert found.best.sent_bps is not None
    assert 0.985 * capacity <= found.best.sent_bps <= 1.0015 * capacity
    assert len(trials) <= MOST_TRIALS


def test_where_the_fastest_arrives_one_trial_is_enough() -> None:
    plan, trials, found = searched(Path(2e9, 5e8))
    assert (len(trials), found.best, found.best and found.best.sent_bps) == (1, found.trials[0], 5e8)
    said = search_words(replace(info_of(), plan=plan), trials)
    assert "all the senders bring out, so the network may carry more" in said[0]


def test_a_path_that_always_loses_has_no_rate() -> None:
    plan, trials, found = searched(Path(1e9, 1e9, loss=0.01))
    assert found.best is None
    assert len(trials) == MOST_TRIALS
    assert "kept the loss within 0.1 %" in search_words(replace(info_of(), plan=plan), trials)[0]


def test_a_trial_that_was_not_measured_counts_as_not_carried() -> None:
    cell = builders.asking(CELL, rate=MAX_RATE)
    trials = [measured(flow(1, 1), 1, status=Status.FAILED), Path(5e8, 1e9).trial(2, 400_000_000)]
    found = search(plan_of(cell), cell, trials)
    assert found.best is not None
    assert (found.best.number, found.trials[0].sent_bps) == (2, None)


def test_the_report_shows_the_best_trial_in_the_table_and_all_of_them_below() -> None:
    plan, trials, found = searched(Path(6.5e8, 2e9))
    info = replace(info_of(), plan=plan)
    assert found.best is not None
    assert [one.repetition for one in decided(plan, trials)] == [found.best.number]
    table = search_table(info, trials)
    assert table is not None
    assert [row.cells[1] for row in table.rows] == [str(one.repetition) for one in trials]
    assert {row.cells[-1] for row in table.rows} == {"yes", "no"}
    page = render(info, trials)
    assert "The search for the highest rate, trial by trial" in page
    assert "is the highest rate with a loss of at most 0.1 %" in page
    assert search_table(info_of(CELL), [measured(flow(1, 1))]) is None
