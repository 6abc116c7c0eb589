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
from typing import Final

from rigctl.base.errors import NodeError
from rigctl.check.covering import Ask, Preparation, choose_preparations, preparations_of
from rigctl.measure.orders import StreamEnds, channels
from rigctl.paths.ends import needed_ways
from rigctl.paths.preparing import PREPARE_S, AdvisedError, End, ask_sender, close_streams, connect_stream
from rigctl.paths.probing import PathEnds, PathState
from rigctl.paths.state import Refusal, Rehearsal
from rigctl.records import Cell, Pair, RunPlan, host_system
from rigctl.settings import CONGESTION, Settings
from rigctl.settings.kinds import AGENT

_log = logging.getLogger(__name__)
REHEARSAL_S: Final = 3.0
"""No further test is prepared once preparations have taken this long."""
_LATE_S: Final = 0.9 * PREPARE_S
_MOST_LATE: Final = 2
"""Number of preparations that may wait for an answer in vain without taking the time of others."""
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
    """A refusal in a preparation, for a stream between these `ends`, the sender first."""

    preparation: Preparation
    error: NodeError
    ends: PathEnds

    @property
    def errno(self) -> str:
        return self.error.error if isinstance(self.error, AdvisedError) else ""

    @property
    def load(self) -> int:
        """Number of flows that the node was to open."""
        return self.preparation.load[self.error.node]

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
            return preparation.load[name] >= self.load
        blamed = next((setting for sign, setting in _BLAMED.items() if sign in what), None)
        if blamed is None and self.ends not in preparation.ways:
            return False
        sends = name == self.ends[0]
        own = self.preparation.of_node(name, sends=sends)
        return {ask for ask in own if blamed in (None, ask[2])} <= preparation.of_node(name, sends=sends)


async def rehearse(plan: RunPlan, ends: Mapping[str, End], paths: Iterable[PathState]) -> Rehearsal:
    """Prepare tests of `plan` on the nodes in `ends`, without pairs whose path failed, and return what is refused."""
    every = preparations_of(cell for cell in plan.cells if cell.engine == AGENT)
    work, began_s = _Rehearsing(ends, paths), time.monotonic()
    able = [work.able(preparation) for preparation in every]
    for preparation in choose_preparations([own for own in able if own is not None]):
        if work.spent_s > REHEARSAL_S:
            break
        await work.prepare(preparation)
    await work.try_fewer_flows([own for own in able if own is not None])
    done = sum(
        own is not None and own.asks <= work.asked and own.ways == preparation.ways
        for preparation, own in zip(every, able, strict=True)
    )
    spent_ms = (time.monotonic() - began_s) * 1e3
    _log.info("rehearsed %d of %d tests by %d preparations in %.0f ms", done, len(every), work.prepared, spent_ms)
    return Rehearsal(done, len(every), tuple(_refusals(work.refused, every)))


class _Rehearsing:
    """Prepares tests one after the other. A path on which nothing was answered in time is then left out."""

    def __init__(self, ends: Mapping[str, End], paths: Iterable[PathState]) -> None:
        self._ends = ends
        self._whole = {path.ends: path for path in paths if path.stream == "0"}
        self._late_rounds = 0
        self.refused: list[_Refused] = []
        self.asked: set[Ask] = set()
        self.prepared = 0
        self.spent_s = 0.0  # without the first rounds that waited for an answer in vain

    def able(self, preparation: Preparation) -> Preparation | None:
        """Return the preparation without the pairs that cannot be prepared; None if there is no other."""
        pairs = [tuple(pair for pair in cell.pairs if self._passes(cell, pair)) for cell in preparation.cells]
        cells = (replace(cell, pairs=own) for cell, own in zip(preparation.cells, pairs, strict=True) if own)
        kept = tuple(_lighten(cell, self._ends) for cell in cells)
        return Preparation(kept) if kept else None

    async def prepare(self, preparation: Preparation) -> None:
        """Prepare a test, without the pairs that were late before, and keep what was refused."""
        self.asked |= preparation.asks
        left = self.able(preparation)
        if left is None:
            return
        began_s = time.monotonic()
        found = await _prepare(left, self._ends)
        spent_s = time.monotonic() - began_s
        if found and spent_s > _LATE_S and self._late_rounds < _MOST_LATE:
            self._late_rounds += 1
            for each in found:
                self._whole.pop(each.ends, None)
        else:
            self.spent_s += spent_s
        self.prepared += 1
        self.refused += found

    async def try_fewer_flows(self, able: Sequence[Preparation]) -> None:
        """Prepare tests with fewer flows on nodes that had too few ports or files, until a test is not refused."""
        for each in [each for each in self.refused if each.errno in _OF_LOAD]:
            name = each.error.node
            lighter = {own.load[name]: own for own in able if own.load.get(name, each.load) < each.load}
            for _, preparation in sorted(lighter.items(), reverse=True):
                known = len(self.refused)
                if self.spent_s > REHEARSAL_S:
                    return
                await self.prepare(preparation)
                if name not in {other.error.node for other in self.refused[known:]}:
                    break

    def _passes(self, cell: Cell, pair: Pair) -> bool:
        datagrams = cell.transport == "udp" or cell.latency_ms is not None
        whole, ways = self._whole, needed_ways(replace(cell, pairs=(pair,)))
        return {pair.source, pair.destination} <= self._ends.keys() and all(
            way in whole and (bool(whole[way].heard) or not datagrams) for way in ways
        )


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
    return host_system(end.facts) in ("FreeBSD", "Windows") or congestion in (available or "").split()


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
            found.append(_Refused(preparation, error, channel.stream.ends))
            if error.node != channel.receiver or not error.what.startswith("listen: "):
                return
            try:  # both ends are asked, even if the receiver refuses
                await ask_sender(cell, channel, ends, _INTERVAL_MS)
            except NodeError as other:
                found.append(_Refused(preparation, other, channel.stream.ends))

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
