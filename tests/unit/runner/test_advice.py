"""What a node refused is told with what would change it."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from rigctl.base.errors import NodeError
from rigctl.records import Link
from rigctl.remote.agent import RefusedError
from rigctl.rig.inventory import Node
from rigctl.runner.conditions import advised
from rigctl.runner.nodes import Nodes


def nodes_with(*, sudo: bool = False, virtual: str | None = None, said: str = "reno cubic\n") -> Nodes:
    async def run(_: str) -> str:
        return said

    rig = SimpleNamespace(virtual=virtual, nodes={"pi1": Node("pi1", "pi1", Link(None, None), sudo=sudo)})
    return cast(Nodes, SimpleNamespace(rig=rig, shell=lambda _: run))


async def refused(nodes: Nodes, error: str, message: str, congestion: str | None = None) -> str:
    async def work() -> Any:
        raise RefusedError("pi1", "set", error, message)

    with pytest.raises(NodeError) as caught:
        await advised(work(), nodes, congestion)
    return str(caught.value)


async def test_what_takes_root_names_sudo() -> None:
    said = await refused(nodes_with(), "EPERM", "mtu of eth0: Operation not permitted")
    assert said == (
        "pi1: set: mtu of eth0: Operation not permitted (EPERM). This needs root: log in as root, or give node pi1 "
        "`sudo: true` in the rig file"
    )
    for nodes in (nodes_with(sudo=True), nodes_with(virtual="namespaces")):
        assert (await refused(nodes, "EPERM", "mtu: no")).endswith("(EPERM)"), "it would not help"


@pytest.mark.parametrize("message", ["sysctl net.ipv4.tcp_congestion_control: No such file", "TCP_CONGESTION: No such"])
async def test_a_congestion_control_that_is_not_there_names_those_that_are(message: str) -> None:
    said = await refused(nodes_with(), "ENOENT", message, "bbr")
    assert said.endswith(
        "(ENOENT). net.ipv4.tcp_available_congestion_control there: reno cubic. "
        "To load it, as root on the node: modprobe tcp_bbr"
    )


async def test_a_congestion_control_that_only_root_may_use_is_told_so() -> None:
    said = await refused(nodes_with(said="reno cubic bbr"), "EPERM", "TCP_CONGESTION: not permitted", "bbr")
    assert "Only root may use bbr" in said


async def test_other_refusals_stay_as_they_are() -> None:
    assert await refused(nodes_with(), "EINVAL", "mtu: Invalid argument") == "pi1: set: mtu: Invalid argument (EINVAL)"
