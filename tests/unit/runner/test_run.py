"""The life of a run around its cells: its status, its holder's name, its lead, its exit code; what iperf3 needs."""

import os
import re
from dataclasses import replace

import builders
import pytest

from rigctl.base.errors import RigError
from rigctl.base.processes import holder
from rigctl.records import Cell, Pair, RunPlan, RunStatus, Status
from rigctl.runner.by_iperf3 import check_iperf3, iperf3_versions, listening_ports
from rigctl.runner.run import Outcome, _status

CELL = Cell(1, "tcp", (Pair("a", "b"),), 1.0, 0.0, 1)
PLAN = RunPlan("t", "", "s", "", "r", "", (), 2, (CELL, replace(CELL, number=2)))


def test_a_run_is_complete_when_every_repetition_of_every_cell_counts() -> None:
    whole = {(cell, repetition, 1): Status.OK for cell in (1, 2) for repetition in (1, 2)}
    assert _status(PLAN, whole) is RunStatus.COMPLETE
    assert _status(PLAN, whole | {(2, 1, 1): Status.INVALID}) is RunStatus.PARTIAL
    assert _status(PLAN, whole | {(2, 1, 1): Status.FAILED}) is RunStatus.PARTIAL
    del whole[2, 2, 1]
    assert _status(PLAN, whole) is RunStatus.PARTIAL


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
    assert listening_ports(TABLES) == {0x14B5, 0x1F90}
    assert listening_ports("") == set()


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
