"""The card of a switch: figures rounded against the claim, lower bounds of the hosts, and what is not a switch's."""

from dataclasses import replace
from functools import cache
from typing import Any

import builders
import message_runs
import pages
import pytest

from rigctl.analysis.run_view import RunView
from rigctl.base.errors import InputError
from rigctl.product.content import product
from rigctl.product.page import files_of, fragment, table_picture
from rigctl.product.switch_card import FrameRow, SwitchCard, switch_card
from rigctl.product.theme import Theme
from rigctl.records import Link, Repetition, RunInfo
from rigctl.settings import ITERATIONS


@cache
def measured() -> tuple[RunInfo, tuple[Repetition, ...]]:
    info, repetitions = pages.stored("parts")
    return info, tuple(repetitions)


def view(**plan: Any) -> RunView:
    info, repetitions = measured()
    return RunView.in_memory(replace(info, plan=replace(info.plan, **plan)), repetitions)


def card(of: RunView) -> SwitchCard:
    made = switch_card(of)
    assert made is not None
    return made


def with_links(rate_bps: int) -> dict[str, Link]:
    return {name: replace(link, rate_bps=rate_bps) for name, link in measured()[0].plan.links.items()}


def control(*trips_us: float) -> RunView:
    """Return the run with these round trips in the tests of its part `delay`, as of a plain cable."""
    info, repetitions = measured()
    cells = [cell for cell in info.plan.cells if cell.part == "delay"]
    others = []
    for cell, each_us in zip(cells, trips_us, strict=True):
        count = cell[ITERATIONS] or 0
        side = message_runs.side(cell.message_bytes or 0, count, each_us * count / 1e6, trips=True)
        others += [
            replace(one, flows=tuple(builders.changing(flow, sender={}) for flow in one.flows))
            if one.cell != cell.number
            else replace(one, flows=tuple(replace(flow, sender=side) for flow in one.flows))
            for one in repetitions
            if one.cell == cell.number
        ]
    kept = [one for one in repetitions if one.cell not in {cell.number for cell in cells}]
    plan = replace(info.plan, rig_name="a cable")
    return RunView.in_memory(replace(info, plan=plan), [*kept, *others])


def test_rates_and_shares_are_those_of_the_slowest_port_rounded_down() -> None:
    made = card(view())
    assert [row.frame_bytes for row in made.rows] == [256, 1518]
    small, full = made.rows
    assert (full.rate, full.share) == ("7,940", "97.8 %")
    assert full.filled is not None and 0.978 <= full.filled < 0.979
    assert (small.rate, small.share) == ("≥ 30,400 (senders)", "≥ 67.3 %")
    assert made.forwards == "Forwards without loss"


def test_a_rate_above_the_line_rate_of_a_virtual_link_is_no_figure_of_a_switch() -> None:
    small, full = card(view(links=with_links(60_000_000))).rows
    assert small == FrameRow(256, "–", "(virtual)")
    assert full == FrameRow(1518, "–", "–")  # even a virtual link carries no more full frames than its rate
    assert card(view(links=with_links(60_000_000), virtual=None)).rows[0] == FrameRow(256, "–", "–")


def test_a_size_that_passed_at_no_rate_is_unknown() -> None:
    info, repetitions = measured()
    lossy = [
        builders.changing_flows(one, receiver={"datagrams": replace(flow.receiver.datagrams, count=1)})
        if one.cell == 2 and (flow := one.flows[0]).receiver is not None and flow.receiver.datagrams is not None
        else one
        for one in repetitions
    ]
    made = card(RunView.in_memory(info, lossy))
    assert made.rows[1] == FrameRow(1518, "–", "–")


def test_the_card_of_hardware_begins_with_its_best_figure() -> None:
    made = card(view(virtual=None))
    assert made.figure == "97.8 % of line rate"
    assert made.summary == (
        "97.8 % of line rate without loss with frames of 1518 bytes, 2 ports at once, both directions"
    )
    assert card(view()).summary == "Frames per second without loss, by their size, 2 ports at once, both directions"


def test_the_delay_is_shown_only_beside_a_control_and_rounded_up() -> None:
    alone = view()
    assert card(alone).control == ""
    assert {name for name, _ in card(alone).lines} == {"A full port", "Delay", "Tcp"}
    alone.control = control(25.0, 1000.0)
    made = card(alone)
    assert made.control == "a cable"
    assert [name for name, _ in made.lines] == ["A full port", "Tcp"]
    small, full = made.rows
    assert small.added.startswith(("3.6 µs (p99 ", "3.7 µs (p99 "))
    assert full.added == "–"  # not slower than the control
    assert "Added to the round trip over a cable" in fragment(product(alone, Theme("A")))


def test_the_conditions_name_ports_and_trials_and_leave_the_watts_empty() -> None:
    assert card(view()).conditions == "2 ports at once, both directions, trials of 1 s. Idle – W, full – W."


def test_the_fragment_and_the_picture_have_every_row_and_line_of_the_card() -> None:
    content = product(view(), Theme("GigaBlox <5>"))
    made = card(view())
    for text in (fragment(content), table_picture(content)):
        assert "GigaBlox &lt;5&gt;" in text
        for row in made.rows:
            assert f"{row.frame_bytes} B" in text
            assert row.rate in text
            assert row.share in text
        assert all(name in text for name, _ in made.lines)
        assert "Idle – W, full – W." in text
    assert content.claimed is None
    assert {*files_of(content)} == {"fragment.html", "table.svg", "table.png", "og.png"}


def test_a_run_of_parts_without_a_search_is_refused_as_is_a_theme_that_chooses_columns() -> None:
    info, repetitions = measured()
    plan = replace(info.plan, cells=info.plan.cells[4:])
    with pytest.raises(InputError, match=r"needs a part with test: udp, rate: max\. Its parts are delay and tcp"):
        product(RunView.in_memory(replace(info, plan=plan), repetitions[-3:]), Theme("A"))
    with pytest.raises(InputError, match="columns: a run with parts is shown as a card"):
        product(view(), replace(Theme("A"), columns=(("Test", "Test"),)))
