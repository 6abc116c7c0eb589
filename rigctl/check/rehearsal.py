"""Rehearses the tests of a scenario: the agents prepare a few of them as a run does, start nothing, and close.

What the nodes refuse is what the run would be refused. The lock of the rig is held, as in a run.
"""

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from rigctl.base.errors import NodeError
from rigctl.check.covering import Preparation, choose_preparations, preparations_of
from rigctl.measure.orders import StreamEnds, channels
from rigctl.paths.ends import needed_ways
from rigctl.paths.preparing import PREPARE_S, AdvisedError, End, ask_sender, close_streams, connect_stream
from rigctl.paths.probing import PathState
from rigctl.paths.state import Refusal, Rehearsal
from rigctl.records import Cell, Pair, RunPlan, host_system
from rigctl.settings import CONGESTION, Settings
from rigctl.settings.kinds import AGENT

_log = logging.getLogger(__name__)
REHEARSAL_S: Final = 3.0
"""No further test is rehearsed this long after the first began."""
_INTERVAL_MS: Final = 100
_BLOCK_BYTES: Final = 4096
"""Size of the files of a rehearsal."""
_OF_LOAD: Final = frozenset({"EADDRINUSE", "EADDRNOTAVAIL", "EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EAGAIN"})
"""errno names of refusals that depend on the number of flows."""
_FIXED: Final = re.compile(r"placement|folder |bind .*\(EADDRNOTAVAIL\)")
"""Matches refusals that no condition changes: placement, folder and address."""
_BLAMED: Final = {
    "placement": "placement",
    "folder ": "folder",
    "mptcp": "mptcp",
    "TCP_CONGESTION": "congestion",
    "SO_ZEROCOPY": "zerocopy",
}
"""Maps a part of a refusal's text to what was asked for; other refusals may concern anything."""
_AVAILABLE: Final = "net.ipv4.tcp_available_congestion_control"


@dataclass(frozen=True, slots=True)
class _Refused:
    """A refusal in a preparation. `sends`: True if the node is the sender of the stream."""

    preparation: Preparation
    error: NodeError
    sends: bool

    @property
    def errno(self) -> str:
        return self.error.error if isinstance(self.error, AdvisedError) else ""

    @property
    def text(self) -> str:
        """Return the message without the verb of the order, which is another at each end."""
        return self.error.what.removeprefix("listen: ").removeprefix("connect: ")

    @property
    def key(self) -> tuple[str, str, str]:
        """Key that refusals for the same reason share, whatever the numbers of their ports and flows."""
        return self.error.node, self.errno, re.sub(r"[0-9]+", "", self.text)

    def prevents(self, preparation: Preparation) -> bool:
        """Tell whether a preparation asks the node for what it refused, with at least as many flows if these matter."""
        name, what = self.error.node, self.error.what
        if name not in preparation.load:
            return False
        if "bind" in what and self.errno == "EADDRNOTAVAIL":
            return True
        if self.errno in _OF_LOAD:
            return preparation.load[name] >= self.preparation.load[name]
        blamed = next((setting for sign, setting in _BLAMED.items() if sign in what), None)
        own = self.preparation.of_node(name, sends=self.sends)
        return {ask for ask in own if blamed in (None, ask[2])} <= preparation.of_node(name, sends=self.sends)


async def rehearse(plan: RunPlan, ends: Mapping[str, End], paths: Iterable[PathState]) -> Rehearsal:
    """Prepare tests of `plan` on the nodes in `ends`, without pairs whose path failed, and return what is refused."""
    whole = {path.ends: path for path in paths if path.stream == "0"}
    every = preparations_of(cell for cell in plan.cells if cell.engine == AGENT)
    able = [
        preparation for preparation in map(partial(_able, ends=ends, whole=whole), every) if preparation is not None
    ]
    refused: list[_Refused] = []
    asked: set[object] = set()
    began_s, prepared = time.monotonic(), 0
    for preparation in choose_preparations(able):
        if time.monotonic() > began_s + REHEARSAL_S:
            break
        prepared += 1
        refused += await _prepare(preparation, ends)
        asked |= preparation.asks
    done = {preparation.cells[0].first for preparation in able if preparation.asks <= asked}
    spent_ms = (time.monotonic() - began_s) * 1e3
    _log.info("rehearsed %d of %d tests by %d preparations in %.0f ms", len(done), len(every), prepared, spent_ms)
    return Rehearsal(len(done), len(every), tuple(_refusals(refused, every)))


def _able(
    preparation: Preparation, ends: Mapping[str, End], whole: Mapping[tuple[str, str], PathState]
) -> Preparation | None:
    """Return the preparation without the pairs that cannot be prepared; None if there is no other."""

    def passes(cell: Cell, pair: Pair) -> bool:
        datagrams = cell.transport == "udp" or cell.latency_ms is not None
        ways = needed_ways(replace(cell, pairs=(pair,)))
        return {pair.source, pair.destination} <= ends.keys() and all(
            way in whole and (bool(whole[way].heard) or not datagrams) for way in ways
        )

    kept = [replace(cell, pairs=tuple(pair for pair in cell.pairs if passes(cell, pair))) for cell in preparation.cells]
    cells = tuple(_lighten(cell, ends) for cell in kept if cell.pairs)
    return Preparation(cells) if cells else None


def _lighten(cell: Cell, ends: Mapping[str, End]) -> Cell:
    """Return the test with files of one block, and without a congestion control that is not loaded.

    An agent with the rights of root would load the module.
    """
    if cell.kind.files:
        cell = replace(cell, message_bytes=min(cell.message_bytes or 1, _BLOCK_BYTES))
    name = cell[CONGESTION]
    if name is None or all(_is_loaded(name, ends[node]) for node in cell.nodes):
        return cell
    return replace(cell, settings=Settings(item for item in cell.settings.items() if item[0] is not CONGESTION))


def _is_loaded(congestion: str, end: End) -> bool:
    available = (end.facts.get("sysctls") or {}).get(_AVAILABLE)
    return host_system(end.facts) != "Linux" or congestion in (available or "").split()


async def _prepare(preparation: Preparation, ends: Mapping[str, End]) -> list[_Refused]:
    """Prepare all streams of a preparation at once, and close them. Return what was refused."""
    made = channels(preparation.cells, lambda: secrets.token_hex(16))
    cells = {cell.traffic_class: cell for cell in preparation.cells}
    found: list[_Refused] = []

    async def connect(channel: StreamEnds) -> None:
        cell = cells[channel.traffic_class]
        try:
            await connect_stream(cell, channel, ends, _INTERVAL_MS)
        except NodeError as error:
            found.append(_Refused(preparation, error, error.node == channel.sender))
            if error.node != channel.receiver or not error.what.startswith("listen: "):
                return
            try:  # both ends are asked, even if the receiver refuses
                await ask_sender(cell, channel, ends, _INTERVAL_MS)
            except NodeError as other:
                found.append(_Refused(preparation, other, sends=True))

    try:
        async with asyncio.timeout(2 * PREPARE_S):
            await asyncio.gather(*map(connect, made))
    except TimeoutError:
        pass  # the agents' own deadline is shorter, so that only a lost agent is late
    finally:
        await close_streams(made, ends)
    return found


def _refusals(refused: Sequence[_Refused], preparations: Collection[Preparation]) -> Iterable[Refusal]:
    """Yield the refusals, each reason of a node once, with the numbers of all tests that it prevents."""
    by_reason: dict[tuple[str, str, str], list[_Refused]] = {}
    for each in refused:
        by_reason.setdefault(each.key, []).append(each)
    for same in by_reason.values():
        first = same[0]
        hit = [preparation for preparation in preparations if any(each.prevents(preparation) for each in same)]
        fixed = _FIXED.match(first.text) is not None
        yield Refusal(
            node=first.error.node,
            text=first.text,
            tests=tuple(
                cell.number for preparation in hit if preparation.is_plain or fixed for cell in preparation.cells
            ),
            unsure=tuple(
                cell.number for preparation in hit if not (preparation.is_plain or fixed) for cell in preparation.cells
            ),
        )
