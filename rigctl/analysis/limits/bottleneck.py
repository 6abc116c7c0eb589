"""Name the limit of a stream or a test: collect its evidence for the rules of `rigctl.model.limits.rules`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rigctl.analysis.limits.evidence import Found, of_flows
from rigctl.analysis.limits.processors import Busy
from rigctl.model.counters.points import CountingPoint, PointKind
from rigctl.model.limits.ceilings import LINE_RATE, reaches
from rigctl.model.limits.evidence import Evidence
from rigctl.model.limits.sharing import DataPath, Links, Taken
from rigctl.model.limits.verdicts import Verdict, judged, together
from rigctl.model.unknowns import total
from rigctl.model.window import CommonWindow
from rigctl.records import Flow, RunInfo

_LINKS: Final = {
    **dict.fromkeys((PointKind.NIC_OUT, PointKind.PORT_IN), "from"),
    **dict.fromkeys((PointKind.PORT_OUT, PointKind.NIC_IN), "to"),
}
"""First word of the name that `Links.of` gives the link of a counting point; of others it is the trunk's."""


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
    seen = []
    for own, verdict in streams:
        ceiling_mbps = own.goodput_mbps / own.efficiency if own.goodput_mbps and own.efficiency else 0.0
        seen.append((verdict, ceiling_mbps - (own.goodput_mbps or 0.0) if ceiling_mbps else 0.0))
    full = efficiency_share is not None and reaches(efficiency_share, LINE_RATE)
    whole = judged(Evidence(efficiency=efficiency_share)) if full and len(seen) > 1 else None
    return together(seen, whole)


def other_traffic_found(
    info: RunInfo, path: DataPath, counted: Mapping[CountingPoint, float], links: Links, taken: Taken
) -> Found:
    """Return the fields of an `Evidence` for the link that is fullest with other traffic; empty if none was counted.

    `counted` is the other traffic along `path`, in Mbit/s, `taken` what the run took of each link.
    """
    best = Found()
    for link, rate_bps in links.of(path):
        kind = link.partition(" ")[0]
        own = {point: mbps for point, mbps in counted.items() if _LINKS.get(point.kind, "trunk") == kind}
        run_share = total(taken.get(link, (None,)))
        if not own or not rate_bps or run_share is None:
            continue
        point = max(own, key=lambda point: own[point])
        share = own[point] * 1e6 / rate_bps
        interface = None if point.ports else info.facts.get(point.owner, {}).get("interface")
        # Links without other traffic are left out.
        if not best or (share > 0 and share + run_share > best["link_share"]):
            best = Found(
                other_share=share,
                other_mbps=own[point],
                other_link=link,
                other_counter=f"{point.owner} {interface}" if interface else str(point),
                link_share=share + run_share,
            )
    return best
