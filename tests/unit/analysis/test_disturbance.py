"""Which classes disturb others: loss in each phase, and the cause that the other streams give away."""

from dataclasses import replace

import pytest
import roles
from documents import document
from roles import CONGESTED, FREE, LOAD, ROLES, WITNESS, Lab, Role

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.disturbance import Disturbance, DisturbedBy, PhasedTest, disturbances_of
from rigctl.figures.phases import in_phase
from rigctl.figures.streams import GOODPUT
from rigctl.model.phases import AFTER, BEFORE, DURING
from rigctl.records import Link, Trunk
from rigctl.report.blocks import Table


def judged(lab: Lab) -> PhasedTest:
    (test,) = disturbances_of(RunView.in_memory(*lab.run()))
    return test


def of(lab: Lab, name: str) -> Disturbance | None:
    return next((one for one in judged(lab).disturbances if one.victim.name == name), None)


def with_roles(**changed: Role) -> Lab:
    return Lab({name: changed.get(name, role) for name, role in ROLES.items()})


BLOCKED = replace(FREE, lost_beside=0.31)


def test_each_phase_has_its_own_goodput_and_loss() -> None:
    view = RunView.in_memory(*with_roles(free=replace(FREE, lost=0.01, lost_beside=0.25)).run())
    (stream,) = view.cells[0].streams
    goodput = [stream[in_phase(GOODPUT, phase)] for phase in (BEFORE, DURING, AFTER)]
    whole = 0.45 * roles.CEILING_BPS / 1e6
    assert goodput == [pytest.approx(whole * share, rel=0.01) for share in (0.99, 0.75, 0.99)]
    losses = [judged(with_roles(free=replace(FREE, lost=0.01, lost_beside=0.25))).streams[0].loss_pct(BEFORE)]
    assert losses == [pytest.approx(1.0, abs=0.3)]
    assert view.cells[3].streams[0][in_phase(GOODPUT, DURING)] is None  # the load has no phases


def test_a_full_port_disturbs_the_streams_to_it_and_no_others() -> None:
    assert of(with_roles(), "free") is None
    found = of(with_roles(), "congested")
    assert found is not None
    assert found.cause is DisturbedBy.RECEIVER
    assert [cell.cell.traffic_class for cell in found.load] == ["load"]
    assert [name for name, _ in found.shares] == ["congested", "load"]
    answer = document(*with_roles().run()).findings[0].text
    assert answer == "No head-of-line blocking, a → b lost nothing while the port of d was 140 % loaded"


def test_loss_on_a_free_port_behind_a_full_one_is_head_of_line_blocking_if_a_witness_loses_nothing() -> None:
    lab = with_roles(free=BLOCKED)
    found = of(lab, "free")
    assert found is not None
    assert found.cause is DisturbedBy.BLOCKED
    assert found.full is not None
    assert found.full.name == "congested"
    answer = document(*lab.run()).findings[0].text
    assert answer.startswith(
        "Head-of-line blocking, a → b lost 31 %, although the port of b was 50 % full; frames to b"
    )


def test_a_witness_that_loses_too_shows_a_buffer_that_ports_share() -> None:
    found = of(with_roles(free=BLOCKED, witness=replace(WITNESS, lost_beside=0.2)), "free")
    assert found is not None
    assert found.cause is DisturbedBy.BUFFER


def test_without_a_witness_both_are_possible_and_the_remedy_is_one() -> None:
    lab = Lab({"free": BLOCKED, "congested": CONGESTED, "load": LOAD})
    found = of(lab, "free")
    assert found is not None
    assert found.cause is DisturbedBy.BLOCKED_OR_BUFFER
    remedies = [finding.remedy or "" for finding in document(*lab.run()).findings]
    assert any("witness: {pairs: d -> b, test: udp, rate: 5%}" in remedy for remedy in remedies)


@pytest.mark.parametrize(
    ("dropped", "blind", "cause"), [({"a": 9}, (), DisturbedBy.QUEUE), ({}, ("a",), DisturbedBy.UNKNOWN)]
)
def test_the_own_queue_of_the_sender_must_not_be_what_drops(
    dropped: dict[str, int], blind: tuple[str, ...], cause: DisturbedBy
) -> None:
    found = of(replace(with_roles(free=BLOCKED), dropped=dropped, blind=blind), "free")
    assert found is not None
    assert found.cause is cause


def test_a_policer_that_drops_without_the_load_too_disturbs_nobody() -> None:
    assert of(with_roles(free=replace(FREE, lost=0.2, lost_beside=0.2)), "free") is None


def test_a_full_link_between_the_switches_is_named_before_the_ports() -> None:
    links = {
        node: Link(roles.RATE_BPS, 1500, switch) for node, switch in (("a", "x"), ("c", "x"), ("b", "y"), ("d", "y"))
    }
    plan = {"links": links, "trunk": Trunk(("x", "y"), roles.RATE_BPS)}
    found = of(replace(with_roles(free=BLOCKED), plan=plan), "free")
    assert found is not None
    assert found.cause is DisturbedBy.TRUNK


def test_a_sender_that_is_stopped_loses_nothing_and_is_held() -> None:
    found = of(with_roles(free=replace(FREE, sent_beside=0.5)), "free")
    assert found is not None
    assert found.cause is DisturbedBy.HELD
    codes = [finding.code for finding in document(*with_roles(free=replace(FREE, sent_beside=0.5)).run()).findings]
    assert "class-held-back" in codes


def test_loss_without_a_full_port_anywhere_has_no_known_cause() -> None:
    light = replace(LOAD, share=0.1, lost_beside=0.0)
    found = of(with_roles(free=BLOCKED, congested=replace(CONGESTED, lost_beside=0.0), load=light), "free")
    assert found is not None
    assert found.cause is DisturbedBy.UNKNOWN


def test_nothing_lost_anywhere_is_said_of_all() -> None:
    quiet = {"first": Role(("a", "b"), 0.9, 0.0, 12.0), "second": Role(("c", "d"), 0.9, 8.0)}
    answer = document(*Lab(quiet).run()).findings[0]
    assert answer.code == "undisturbed"
    assert answer.text == "No class disturbs another; none loses 0.5 % more or 5 % of its goodput while others send"


def test_what_a_page_and_a_terminal_show_of_phases() -> None:
    made = document(*with_roles(free=BLOCKED).run())
    (section,) = [section for section in made.sections if section.title == "Before, during and after the load"]
    (table,) = section.blocks
    assert isinstance(table, Table)
    assert made.picture is not None
    assert [key.name for key in made.picture.keys] == ["free a → b", "congested a → d", "witness d → b", "load c → d"]
    assert len(table.rows) == 9
