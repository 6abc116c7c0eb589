"""Name the limit of a stream or a test: collect its evidence for the rules of `rigctl.model.limits.rules`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rigctl.analysis.limits.evidence import Found, of_flows
from rigctl.analysis.limits.processors import Busy
from rigctl.model.counters.others import OtherTraffic
from rigctl.model.counters.points import CountingPoint, PointKind
from rigctl.model.limits.ceilings import LINE_RATE, reaches
from rigctl.model.limits.evidence import Evidence
from rigctl.model.limits.sharing import DataPath, TrunkLink, links_of
from rigctl.model.limits.verdicts import Verdict, judged, together
from rigctl.model.unknowns import total
from rigctl.model.window import CommonWindow
from rigctl.records import Flow, RunInfo

_SENDS: Final = (PointKind.NIC_OUT, PointKind.PORT_IN)
_RECEIVES: Final = (PointKind.PORT_OUT, PointKind.NIC_IN)


def evidence(
    efficiency_share: float | None,
    goodput_mbps: float | None = None,
    asked_mbps: float | None = None,
    flows: Sequence[Flow] = (),
    busy: Busy | None = None,
    window: CommonWindow | None = None,
    known_rtt_s: float | None = None,
    beside: Found | None = None,
    searched: bool = False,
) -> Evidence:
    """Return all evidence on a stream. `goodput_mbps` and `asked_mbps` are sums over `flows`, `beside` further fields.

    `searched`: a search found the rate, nobody requested it.
    """
    named = busy.limit if busy else None
    asked_share = goodput_mbps / asked_mbps if asked_mbps and goodput_mbps is not None else None
    seen = of_flows(flows, goodput_mbps, window, known_rtt_s)
    lost_share = seen.get("lost_share")
    passed = 1.0 - lost_share if lost_share is not None else None
    share = asked_share if asked_mbps else efficiency_share
    return Evidence(
        **seen,
        **(beside or {}),
        efficiency=efficiency_share,
        asked_share=None if searched else asked_share,
        sent_share=share / passed if share is not None and passed and seen.get("halves") is None else None,
        processors="others" if named == "unknown" else named,
        busy_pct=busy.highest_pct if busy else None,
        others_pct=busy.others_pct if busy else None,
        agent_share=busy.agent_share if busy else None,
    )


def named(streams: Iterable[tuple[Evidence, Verdict]], efficiency_share: float | None) -> Verdict:
    """Return the limit of a test from its streams; `efficiency_share` is that of their sum."""
    seen = [(verdict, _short_mbps(own)) for own, verdict in streams]
    full = efficiency_share is not None and reaches(efficiency_share, LINE_RATE)
    whole = judged(Evidence(efficiency=efficiency_share)) if full and len(seen) > 1 else None
    return together(seen, whole)


def _short_mbps(seen: Evidence) -> float:
    """Return how far a stream is below its ceiling."""
    return seen.goodput_mbps / seen.efficiency - seen.goodput_mbps if seen.goodput_mbps and seen.efficiency else 0.0


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
        # Links without other traffic are left out.
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
