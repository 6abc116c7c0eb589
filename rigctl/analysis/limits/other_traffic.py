"""The fullest link of a path that carries other traffic, as evidence."""

from collections.abc import Iterable, Mapping, Sequence

from rigctl.analysis.limits.evidence import Found
from rigctl.model.counters.others import OtherTraffic
from rigctl.model.counters.points import CountingPoint, PointKind
from rigctl.model.sharing import DataPath, TrunkLink, links_of
from rigctl.model.unknowns import total
from rigctl.records import RunInfo

_SENDS = (PointKind.NIC_OUT, PointKind.PORT_IN)
_RECEIVES = (PointKind.PORT_OUT, PointKind.NIC_IN)


def other_traffic_found(
    info: RunInfo,
    path: DataPath,
    counted: Iterable[OtherTraffic],
    taken: Mapping[str, Sequence[float | None]],
    rates_bps: Mapping[str, int | None],
    trunk: TrunkLink | None,
) -> Found:
    """Return the fields of an `Evidence` for the link that is fullest with other traffic; empty if none was counted.

    `counted` is what was counted along `path`, `taken` what the run took of each link.
    """
    seen, best = list(counted), Found()
    for link, rate_bps in links_of(path, rates_bps, trunk):
        kind = link.partition(" ")[0]
        own = [other for other in seen if _link_kind(other.point) == kind]
        run_share = total(taken.get(link, (None,)))
        if not own or not rate_bps or run_share is None:
            continue
        largest = max(own, key=lambda other: other.mbps)
        share = largest.mbps * 1e6 / rate_bps
        # Links without other traffic say nothing about it.
        if not best or (share > 0 and share + run_share > best["link_share"]):
            best = Found(
                other_share=share,
                other_mbps=largest.mbps,
                other_link=link,
                other_counter=_counter(info, largest.point),
                link_share=share + run_share,
            )
    return best


def _link_kind(point: CountingPoint) -> str:
    """Return the first word of the name that `links_of` gives the link of `point`."""
    return "from" if point.kind in _SENDS else "to" if point.kind in _RECEIVES else "trunk"


def _counter(info: RunInfo, point: CountingPoint) -> str:
    """Return the name of an interface or a port: `pc3 eth0`, `sw p3`."""
    if point.ports:
        return str(point)
    interface = info.facts.get(point.owner, {}).get("interface")
    return f"{point.owner} {interface}" if interface else str(point)
