"""Whether a stored run may be gone on with: what matters, what does not, and what is said."""

import os
import socket
from dataclasses import replace

import builders
import pytest

from rigctl.base.errors import InputError
from rigctl.base.processes import process
from rigctl.records import Condition, HostSetting, Link, RunPlan, Trunk
from rigctl.runner.resume import Fate, check, controller_id, differences, fate

PLAN = builders.plan(repeat=2, conditions=(Condition("plain", (HostSetting("mtu", "1500"),)),))


def test_titles_notes_and_comments_do_not_matter() -> None:
    changed = replace(PLAN, title="t", notes="n", scenario_yaml="#", rig_yaml="#", overrides=("--set window=64K,200K",))
    assert list(differences(PLAN, changed)) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (replace(PLAN, repeat=3), "repeat: 2 then, 3 now"),
        (replace(PLAN, rig_name="mylab", virtual=None), "rig: gigablox (namespaces) then, mylab (real hardware) now"),
        (replace(PLAN, links={**PLAN.links, "pi1": Link(10**8, 1500)}), "link of pi1: rate 1000000000, MTU 1500 then"),
        (replace(PLAN, cells=PLAN.cells[:6]), "tests: 7 then, 6 now"),
        (replace(PLAN, cells=builders.gigablox_cells(5.0)), "test 1: duration_s: 10 s then, 5 s now"),
        (replace(PLAN, conditions=(Condition("plain", ()),)), "condition plain: its settings have changed"),
        (replace(PLAN, trunk=Trunk(("a", "b"), 8 * 10**9)), "the rig's trunk: – then, Trunk"),
        (replace(PLAN, max_skew_s=0.05), "max_skew: 10 ms then, 50 ms now"),
    ],
)
def test_what_changes_the_figures_is_told_with_both_values(changed: RunPlan, said: str) -> None:
    found = list(differences(PLAN, changed))
    assert len(found) == 1
    assert found[0].startswith(said)


def test_a_refusal_names_the_run_the_differences_and_how_it_was_started() -> None:
    info = builders.run(replace(PLAN, overrides=("--duration 10s",)))
    with pytest.raises(InputError) as raised:
        check(info, replace(PLAN, cells=builders.gigablox_cells(5.0)), {}, None)
    lines = str(raised.value).splitlines()
    assert lines[0] == f"run {info.run} can't be resumed; it differs from what is requested:"
    assert lines[1] == "  test 1: duration_s: 10 s then, 5 s now"
    assert lines[-1] == "It was started with --duration 10s. Undo the change, or start a new run without --resume"


def test_another_agent_is_no_way_to_go_on() -> None:
    info = builders.run(PLAN, versions={"agent x86_64 sha256": "a" * 64, "python": "3.11"})
    check(info, PLAN, {"agent x86_64 sha256": "a" * 64, "python": "3.12"}, None)
    with pytest.raises(InputError, match="agent x86_64 sha256: aaaaaaaaaaaa then, bbbbbbbbbbbb now"):
        check(info, PLAN, {"agent x86_64 sha256": "b" * 64}, None)


def test_a_run_that_another_living_process_measures_is_left_alone() -> None:
    info, parent = builders.run(PLAN), process(os.getppid())
    host, _, _ = controller_id().split(" ")
    assert parent is not None
    with pytest.raises(InputError, match=f"is still running: process {parent.pid} on {host}"):
        check(info, PLAN, {}, f"{host} {parent.pid} {parent.started}")
    check(info, PLAN, {}, f"{host} {parent.pid} {parent.started + 1}")  # its process id was used again
    check(info, PLAN, {}, f"elsewhere {parent.pid} {parent.started}")  # the nodes' locks keep two runs apart


def test_the_fate_of_a_controller_is_known_on_its_own_host_only() -> None:
    host = socket.gethostname()
    me, parent = controller_id().split(" "), process(os.getppid())
    assert parent is not None
    assert fate(f"{host} {parent.pid} {parent.started}") is Fate.ALIVE
    assert fate(f"{host} {os.getppid()} 1") is Fate.GONE  # the number was used again
    assert fate(f"{host} {2**22 + 1} {me[2]}") is Fate.GONE
    assert fate(f"elsewhere {os.getppid()} 1") is Fate.UNKNOWN
    assert {fate(text) for text in (None, "", "a b", f"{host} ² 1", f"{host} {'9' * 5000} 1")} == {Fate.UNKNOWN}
