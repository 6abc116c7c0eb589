"""The life of a run around its tests: its status, its exit code, what iperf3 needs, and whether it is gone on with."""

import os
import re
import socket
from dataclasses import replace

import builders
import pytest
from known import known

from rigctl.base.errors import InputError, RigError
from rigctl.base.processes import holder, process
from rigctl.hosts.machine import LISTENING_PORTS
from rigctl.records import Condition, HostSetting, Link, Pair, RunPlan, RunStatus, Status, Trunk
from rigctl.runner.by_iperf3 import check_iperf3, iperf3_versions
from rigctl.runner.resume import Fate, check_resumable, controller_id, differences, fate
from rigctl.runner.run import Outcome, _status

PLAN = builders.plan(repeat=2, conditions=(Condition("plain", (HostSetting("mtu", "1500"),)),))


def test_a_run_is_complete_when_every_repetition_of_every_cell_counts() -> None:
    whole = {(cell.number, repetition, 1): Status.OK for cell in PLAN.cells for repetition in (1, 2)}
    assert _status(PLAN, whole) is RunStatus.COMPLETE
    fewer = {numbers: status for numbers, status in whole.items() if numbers != (2, 2, 1)}
    for part in (whole | {(2, 1, 1): Status.INVALID}, whole | {(2, 1, 1): Status.FAILED}, fewer):
        assert _status(PLAN, part) is RunStatus.PARTIAL


def test_the_exit_code_says_how_it_ended_and_whether_settings_may_stay_changed() -> None:
    statuses = (RunStatus.COMPLETE, RunStatus.PARTIAL, RunStatus.INTERRUPTED)
    assert [Outcome("r", status).exit_code for status in statuses] == [0, 3, 130]
    assert [Outcome("r", status, restored=False).exit_code for status in statuses] == [3, 3, 130]


def test_the_holder_says_who_where_and_which_process() -> None:
    assert re.fullmatch(rf"\S.*@.+ pid {os.getpid()}", holder())


TABLES = """\
   0: 0100007F:14B5 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 39511 1 0 100 0 0 10 0
   1: 0100007F:C41E 0100007F:14B6 01 00000000:00000000 00:00000000 00000000     0        0 39512 1 0 100 0 0 10 0
   0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000
"""
BY_IPERF3 = replace(builders.cell(pairs=(Pair("a", "b"),)), engine="iperf3")
BY_AGENT = builders.cell(pairs=(Pair("a", "c"),))


def test_ports_that_listen_are_those_of_both_ip_versions() -> None:
    assert LISTENING_PORTS.parse(TABLES) == {0x14B5, 0x1F90}
    assert LISTENING_PORTS.parse("") == set()


def test_nodes_without_iperf3_are_one_error_that_says_how_to_install_it() -> None:
    plan = builders.plan(cells=(BY_IPERF3, BY_AGENT))
    with pytest.raises(RigError, match=r"^a, b: iperf3 is not installed.*apt-get install iperf3") as caught:
        check_iperf3(plan, {"a": {"iperf3": None}, "b": {}, "c": {}})
    assert caught.value.exit_code == 3
    check_iperf3(plan, {"a": {"iperf3": "3.9"}, "b": {"iperf3": "3.12"}, "c": {}})


def test_versions_are_those_of_the_nodes_that_use_it() -> None:
    facts = {"a": {"iperf3": "3.12"}, "b": {"iperf3": "3.9"}, "c": {"iperf3": "3.1"}}
    assert iperf3_versions(builders.plan(cells=(BY_IPERF3,)), facts) == {"iperf3": "3.12, 3.9"}
    assert iperf3_versions(builders.plan(cells=(BY_AGENT,)), facts) == {}


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
    (found,) = differences(PLAN, changed)
    assert found.startswith(said)


def test_a_refusal_names_the_run_the_differences_and_how_it_was_started() -> None:
    info = builders.run(replace(PLAN, overrides=("--duration 10s",)))
    with pytest.raises(InputError) as raised:
        check_resumable(info, replace(PLAN, cells=builders.gigablox_cells(5.0)), {}, None)
    first, second, *_, last = str(raised.value).splitlines()
    assert first == f"run {info.run} can't be resumed; it differs from what is requested:"
    assert second == "  test 1: duration_s: 10 s then, 5 s now"
    assert last == "It was started with --duration 10s. Undo the change, or start a new run without --resume"


def test_another_agent_is_no_way_to_go_on() -> None:
    info = builders.run(PLAN, versions={"agent x86_64 sha256": "a" * 64, "python": "3.11"})
    check_resumable(info, PLAN, {"agent x86_64 sha256": "a" * 64, "python": "3.12"}, None)
    with pytest.raises(InputError, match="agent x86_64 sha256: aaaaaaaaaaaa then, bbbbbbbbbbbb now"):
        check_resumable(info, PLAN, {"agent x86_64 sha256": "b" * 64}, None)


def test_a_run_that_another_living_process_measures_is_left_alone() -> None:
    info, parent, host = builders.run(PLAN), known(process(os.getppid())), socket.gethostname()
    with pytest.raises(InputError, match=f"is still running: process {parent.pid} on {host}"):
        check_resumable(info, PLAN, {}, f"{host} {parent.pid} {parent.started}")
    check_resumable(info, PLAN, {}, f"elsewhere {parent.pid} {parent.started}")  # the nodes' locks keep two runs apart


def test_the_fate_of_a_controller_is_known_on_its_own_host_only() -> None:
    host, me, parent = socket.gethostname(), controller_id().split(" "), known(process(os.getppid()))
    assert fate(f"{host} {parent.pid} {parent.started}") is Fate.ALIVE
    assert fate(f"{host} {os.getppid()} 1") is Fate.GONE  # the number was used again
    assert fate(f"{host} {2**22 + 1} {me[2]}") is Fate.GONE
    assert fate(f"elsewhere {os.getppid()} 1") is Fate.UNKNOWN
    assert {fate(text) for text in (None, "", "a b", f"{host} ² 1", f"{host} {'9' * 5000} 1")} == {Fate.UNKNOWN}


def test_a_process_of_another_user_that_proc_hides_is_not_taken_for_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert fate(f"{socket.gethostname()} {2**22 + 1} 1") is Fate.UNKNOWN
