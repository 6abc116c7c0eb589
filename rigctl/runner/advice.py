"""What a node refused, with what would change that: root's rights, or a congestion control that is not loaded."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from rigctl.base.errors import NodeError
from rigctl.base.texts import printable
from rigctl.remote.agent import RefusedError
from rigctl.runner.nodes import Nodes

CONGESTION_SYSCTL: Final = "net.ipv4.tcp_congestion_control"
_AVAILABLE: Final = "net.ipv4.tcp_available_congestion_control"
_SIGNS: Final = (CONGESTION_SYSCTL, "TCP_CONGESTION")
"""How the agent's messages name a congestion control that it could not set."""

T = TypeVar("T")


async def advised(work: Awaitable[T], nodes: Nodes, congestion: str | None = None) -> T:
    """What `work` gives. A refusal of a node is raised with what to do about it; `congestion` is what was asked for."""
    try:
        return await work
    except RefusedError as error:
        advice = await _advice(error, nodes, congestion)
        raise NodeError(error.node, f"{error.what}{advice}") from None


async def _advice(error: RefusedError, nodes: Nodes, congestion: str | None) -> str:
    node = nodes.rig.nodes.get(error.node)
    if congestion is not None and error.error in ("ENOENT", "EPERM") and any(sign in error.what for sign in _SIGNS):
        return await _congestion_advice(nodes.shell(error.node), congestion, refused=error.error == "EPERM")
    if error.error in ("EPERM", "EACCES") and node is not None and not node.sudo and nodes.rig.virtual is None:
        return f". This needs root: log in as root, or give node {node.name} `sudo: true` in the rig file"
    return ""


async def _congestion_advice(run: Callable[[str], Awaitable[str]], wanted: str, *, refused: bool) -> str:
    try:
        said = await run(f"cat /proc/sys/{_AVAILABLE.replace('.', '/')} 2>/dev/null")
    except NodeError:
        return ""
    there = printable(" ".join(said.split()))[:200] or "unknown"
    if refused and wanted in there.split():
        return f". Only root may use {wanted}: see net.ipv4.tcp_allowed_congestion_control, or set `sudo: true`"
    return f". {_AVAILABLE} there: {there}. To load it, as root on the node: modprobe tcp_{wanted}"
