"""Slow nodes of a mesh as commands for Slurm: one node each, safe in a shell, nothing if no node is slow."""

import shlex
from dataclasses import replace

import builders
import pytest
from meshes import NODES, mesh_run, messages_between

from rigctl.analysis.run_view import RunView
from rigctl.base.errors import InputError
from rigctl.records import Link, Repetition, RunInfo
from rigctl.report.export.slurm import drain_commands


def exported(made: tuple[RunInfo, list[Repetition]]) -> tuple[list[str], list[str]]:
    return drain_commands(RunView(*made))


def test_each_slow_node_is_one_command_with_the_figures_of_the_mesh() -> None:
    info, measured = mesh_run({("n2", ""): 3000})
    commands, notes = exported((info, measured))
    (words,) = map(shlex.split, commands)
    assert words[:4] == ["scontrol", "update", "nodename=n2", "state=drain"]
    assert words[4:] == [f"reason=rigctl {info.run}: slow in sending, 3.00 Gbit/s, others 9.40 Gbit/s"]
    assert notes == []


def test_no_slow_node_is_no_command_and_a_note() -> None:
    assert exported(mesh_run({})) == ([], [f"run {mesh_run({})[0].run}: no slow node to drain"])


def test_a_node_with_a_slower_link_in_the_rig_file_is_not_drained() -> None:
    info, measured = mesh_run({("n2", ""): 940})
    links = info.plan.links | {"n2": Link(10**9, 9000)}
    commands, notes = exported((replace(info, plan=replace(info.plan, links=links)), measured))
    assert commands == []
    assert "n2 is slow in sending" in notes[0]


@pytest.mark.parametrize("name", ["n[1-4]", "n1,n3", "ALL", "x'; reboot; '", "a\nb", "$(reboot)"])
def test_a_name_that_means_more_than_one_node_drains_none(name: str) -> None:
    nodes = (*NODES, name)
    commands, notes = exported(mesh_run({(name, ""): 3000}, nodes=nodes))
    assert commands == []
    assert shlex.quote(name) in notes[0]


def test_numbered_nodes_of_an_allocation_come_with_a_warning() -> None:
    info, measured = mesh_run({("node1", ""): 3000}, nodes=("node1", "node2", "node3"))
    plan = replace(info.plan, rig_yaml="transport: srun\nslurm:\n")
    commands, notes = exported((replace(info, plan=plan), measured))
    assert len(commands) == 1
    assert notes[0].startswith("check the names")


def test_a_run_that_is_no_mesh_of_streams_is_refused() -> None:
    with pytest.raises(InputError, match="is no mesh of streams"):
        exported(builders.gigablox())
    times = {(left, right): 1.0 for left in NODES for right in NODES if left != right}
    with pytest.raises(InputError, match="is no mesh of streams"):
        exported(messages_between("pingpong", times))
