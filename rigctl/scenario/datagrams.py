"""The size of datagrams where a scenario does not say: what fits the MTU of the pairs' links."""

from collections.abc import Iterator, Sequence

from rigctl.kinds import KINDS
from rigctl.model.limits.ceilings import Packet
from rigctl.records import Condition, Pair
from rigctl.rig.inventory import Rig
from rigctl.scenario.matrix import Row
from rigctl.scenario.meshes import PairSet
from rigctl.yamlfile import Document, Mistake


def fitting_bytes(rig: Rig, pairs: Sequence[Pair], condition: Condition | None) -> int | None:
    """The payload of the largest datagram that no pair has to cut up; `None` where the rig file lacks an MTU."""
    given = condition.mtu if condition is not None else None
    mtus = [given or rig.nodes[node].link.mtu for pair in pairs for node in (pair.source, pair.destination)]
    known = [mtu for mtu in mtus if mtu is not None]
    if not known or len(known) < len(mtus):
        return None
    return Packet("udp", rig.ip_version).largest_payload(min(known))


def datagram_mistakes(document: Document, tests: Sequence[tuple[Row, PairSet]], rig: Rig) -> Iterator[Mistake]:
    """Datagrams without a size, on links whose MTU the rig file does not say."""
    kind = KINDS[document.data.get("test", "tcp")]
    if kind.counts != "datagrams" or all(row["size"] is not None for row, _ in tests):
        return
    if any(fitting_bytes(rig, pairs, None) is None for pairs in {pairs for _, pairs in tests}):
        what = f"test: {kind.name} needs the size of its datagrams, as in size: 1472: the rig file lacks an MTU."
        yield document.mistake(("test",), what)
