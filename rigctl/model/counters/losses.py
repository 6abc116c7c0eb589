"""Where segments were lost: retransmits are put down to the place whose counters show it, or to none.

Two kinds of evidence. A *hole*: payload that passed one place and did not come by the next. And *drops* that a queue, a
port or an interface counted itself; they may be of other traffic, and a drop may be a super-packet, so they count only
where there is no hole to look at. A place is named only where its share of the retransmits is `LEAST_SHARE` or more;
what other traffic could have hidden is not guessed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rigctl.model.counters.balance import Reconciliation
from rigctl.model.counters.places import Counted, Place, Spot, Wiring, by_ends_of, sent_again
from rigctl.model.unknowns import total
from rigctl.records import Flow

LEAST_SHARE: Final = 0.2
LEAST_SEGMENTS: Final = 3  # fewer are below what an address lookup or two add to an interface's counters
MOST_EXCESS: Final = 0.25
"""Where a place counted more than the flows', by this share of the next hole or more, that hole's size is not known."""
MOST_HOLE: Final = 1.5
"""A hole of more than so many times what was sent again is no loss: TCP would have sent that again too."""

MOST_PLACES: Final = 3
"""More of them are counted in a name, not listed."""


class Where(StrEnum):
    """Kinds of places that lose segments."""

    QUEUE = "the sender's queue"
    CABLE = "the cable"
    SWITCH = "the switch"
    RECEIVER = "the receiver's interface"
    BETWEEN = "between two places"  # nothing counts in between
    NOWHERE = "nowhere on the way"  # they came in at the receiver: dropped behind that, or sent again needlessly
    UNATTRIBUTED = "unattributed"


@dataclass(frozen=True, slots=True)
class Attribution:
    """About how many of the segments sent again were lost where. `name` for people, `evidence` a sentence's part."""

    where: Where
    name: str
    segments_about: int
    evidence: str


@dataclass(frozen=True, slots=True)
class _Stream:
    """The flows from one node to another: their way, and what they sent again; `segments`: `None` where not known."""

    way: tuple[Place, ...]
    segments: int | None
    octets: int
    mss_sum: int  # over the flows that know theirs
    mss_flows: int


@dataclass(frozen=True, slots=True)
class _Step:
    """From some places to the next known ones of the streams between them. `before` empty: from the agents."""

    before: tuple[Place, ...]
    after: tuple[Place, ...]
    streams: tuple[_Stream, ...]


def attribute(
    flows: Sequence[Flow],
    wiring: Wiring,
    counted: Mapping[Place, Counted],
    balance: Mapping[Place, Reconciliation],
) -> list[Attribution]:
    """Where the segments that `flows` sent again were lost; the rest as unattributed. Empty where none was sent again.

    `None` is never guessed: where the number sent again is not known for some flow, nothing is said.
    """
    streams = [_stream_of(wiring.way(*ends), own) for ends, own in by_ends_of(flows).items()]
    again = _segments(streams)
    if not again:
        return []
    holes = [(step, hole) for step in _steps(streams, balance) for hole in _hole(step, balance)]
    # Where a balance covers the place that counted drops, it knows better.
    looked_at = {place for step, _ in holes for place in _droppers(step)}
    dropped = dict(_from_drops(streams, counted, looked_at))
    found = list(dropped.values())
    for step, hole in holes:
        told = 0
        if dropped and _where(step) is Where.BETWEEN:
            inside = {place for stream in step.streams for place in stream.way if place.spot is not Spot.NIC_IN}
            told = sum(dropped[place].segments_about for place in inside & dropped.keys())
        found.extend(_from_hole(step, hole, told, counted))
    left = again - sum(one.segments_about for one in found)
    if left < max(1, LEAST_SHARE * again):
        return found
    if _all_arrived(streams, balance, again - left):
        needless = "the receivers' interfaces counted them all: dropped behind those, or sent again needlessly"
        return [*found, Attribution(Where.NOWHERE, "nowhere on the way", left, needless)]
    return [*found, Attribution(Where.UNATTRIBUTED, "unattributed", left, "no counter shows where")]


def _stream_of(way: tuple[Place, ...], flows: Sequence[Flow]) -> _Stream:
    sizes = [flow.sender.tcp.mss for flow in flows if flow.sender is not None and flow.sender.tcp.mss]
    return _Stream(
        way,
        total([None if flow.sender is None else flow.sender.tcp.retransmits for flow in flows]),
        sum(sent_again(flow) or 0 for flow in flows),
        sum(sizes),
        len(sizes),
    )


def _segments(streams: Sequence[_Stream]) -> int | None:
    """Sent again by all of them."""
    return total([one.segments for one in streams])


def _segment_bytes(streams: Sequence[_Stream]) -> float:
    known = sum(one.mss_flows for one in streams)
    return sum(one.mss_sum for one in streams) / known if known else 1448.0


def _steps(streams: Sequence[_Stream], balance: Mapping[Place, Reconciliation]) -> list[_Step]:
    """The steps of all streams' ways over the places whose balance is known; those that share a place are one."""
    edges: list[tuple[Place | None, Place, _Stream]] = []
    for stream in streams:
        known = [place for place in stream.way if _is_known(balance.get(place))]
        edges.extend((known[at - 1] if at else None, place, stream) for at, place in enumerate(known))
    groups: dict[int, list[int]] = {}
    # A place is left in one step and reached in another: the two are told apart.
    group_of: dict[tuple[str, Place], int] = {}
    for number, (before, after, _) in enumerate(edges):
        keys = [("to", after), *([("from", before)] if before is not None else [])]
        groups[number] = [number]
        for other in {group_of[key] for key in keys if key in group_of}:
            groups[number] += groups.pop(other)
        for member in groups[number]:
            left, reached, _ = edges[member]
            group_of["to", reached] = number
            if left is not None:
                group_of["from", left] = number
    steps = [_step_of([edges[at] for at in sorted(group)]) for group in sorted(groups.values(), key=min)]
    return [part for step in steps for part in _parts(step, balance)]


def _parts(step: _Step, balance: Mapping[Place, Reconciliation]) -> Iterator[_Step]:
    """A step to several places as one to each, where nothing was missing before: what each lacks is its own then."""
    least = LEAST_SEGMENTS * _segment_bytes(step.streams)
    if any(abs(balance[place].short_octets or 0.0) >= least for place in step.before):
        yield step
        return
    for place in step.after:
        yield _Step(step.before, (place,), tuple(stream for stream in step.streams if place in stream.way))


def _step_of(edges: Sequence[tuple[Place | None, Place, _Stream]]) -> _Step:
    before = tuple(dict.fromkeys(place for place, _, _ in edges if place is not None))
    after = tuple(dict.fromkeys(place for _, place, _ in edges))
    return _Step(before, after, tuple(stream for _, _, stream in edges))


def _is_known(one: Reconciliation | None) -> bool:
    return one is not None and one.short_octets is not None


def _hole(step: _Step, balance: Mapping[Place, Reconciliation]) -> Iterator[float]:
    """Payload octets that got lost in `step`, where that is sure enough to be told."""
    lost_before = sum(max(0.0, balance[place].short_octets or 0.0) for place in step.before)
    lost_after = sum(max(0.0, balance[place].short_octets or 0.0) for place in step.after)
    excess = sum(max(0.0, -(balance[place].short_octets or 0.0)) for place in (*step.before, *step.after))
    uncertain = sum(balance[place].uncertain_octets for place in (*step.before, *step.after))
    hole = max(0.0, lost_after - lost_before)
    again = sum(stream.octets for stream in step.streams)
    # Other traffic at one of the places may hide a loss there, or make one here.
    least = LEAST_SEGMENTS * _segment_bytes(step.streams)
    hidden = excess > max(least, MOST_EXCESS * max(hole, LEAST_SHARE * again))
    if not hidden and uncertain <= max(least, MOST_EXCESS * hole) and hole <= max(least, MOST_HOLE * again):
        yield hole


def _from_hole(
    step: _Step,
    hole: float,
    told: int,
    counted: Mapping[Place, Counted],
) -> Iterator[Attribution]:
    """What to say of a hole; `told` of its segments are already put down to drops that lie within it."""
    size = _segment_bytes(step.streams)
    own = _segments(step.streams) or 0
    lost = min(round(hole / size), own) - told
    if lost < max(LEAST_SEGMENTS, LEAST_SHARE * own):
        return
    yield _named(step, lost, counted)


def _named(step: _Step, segments: int, counted: Mapping[Place, Counted]) -> Attribution:
    where = _where(step)
    drops = [
        (place, number) for place in _droppers(step) if (number := counted[place].drops) is not None and number > 0
    ]
    evidence = "its octets in and out differ by so much"
    if where is Where.QUEUE:
        evidence = "its interface sent so much less than the flows did"
    elif where is not Where.SWITCH:
        evidence = "octets counted before and after it differ by so much"
    if drops:
        evidence += ", and " + ", ".join(f"{place} counted {number} drops" for place, number in drops)
    return Attribution(where, _name(where, step, [place for place, _ in drops]), segments, evidence)


def _droppers(step: _Step) -> tuple[Place, ...]:
    """The places whose own drops lie within the step: what an interface drops on sending, and a port either way."""
    inside = [place for place in step.after if place.way == "out"]
    return (*(place for place in step.before if place.spot in (Spot.PORT_IN, Spot.TRUNK_IN)), *inside)


def _where(step: _Step) -> Where:
    after = {place.spot for place in step.after}
    if not step.before:
        return Where.QUEUE if after == {Spot.NIC_OUT} else Where.BETWEEN
    before = {place.spot for place in step.before}
    if len({place.owner for place in (*step.before, *step.after)}) == 1 and before <= {Spot.PORT_IN, Spot.TRUNK_IN}:
        return Where.SWITCH
    if (before, after) in (({Spot.NIC_OUT}, {Spot.PORT_IN}), ({Spot.TRUNK_OUT}, {Spot.TRUNK_IN})):
        return Where.CABLE
    return Where.RECEIVER if (before, after) == ({Spot.PORT_OUT}, {Spot.NIC_IN}) else Where.BETWEEN


def _name(where: Where, step: _Step, droppers: Sequence[Place]) -> str:
    into, out_of = _names(step.after), _names(step.before)
    if where is Where.QUEUE:
        return f"the queue of {', '.join(place.owner for place in step.after)}"
    if where is Where.SWITCH:
        ports = droppers or step.after
        names = ", ".join("+".join(place.ports) for place in ports)
        return f"switch {step.after[0].owner}, port {names}"
    if where is Where.CABLE:
        return f"the cable from {out_of} to {into}"
    if where is Where.RECEIVER:
        return f"the cable from {out_of} to {into}, or that interface"
    return f"between {out_of} and {into}" if out_of else f"before {into}"


def _names(places: Sequence[Place]) -> str:
    if len(places) <= MOST_PLACES:
        return ", ".join(str(place) for place in places)
    interfaces = sum(place.spot in (Spot.NIC_OUT, Spot.NIC_IN) for place in places)
    kinds = "ports" if not interfaces else "interfaces" if interfaces == len(places) else "interfaces and ports"
    return f"{len(places)} {kinds}"


def _from_drops(
    streams: Sequence[_Stream], counted: Mapping[Place, Counted], looked_at: set[Place]
) -> Iterator[tuple[Place, Attribution]]:
    """What places counted as dropped themselves, where no balance covers it. Never more than was sent again."""
    passing: dict[Place, list[_Stream]] = {}
    for stream in streams:
        for place in stream.way:
            passing.setdefault(place, []).append(stream)
    for place, own_streams in passing.items():
        one, own = counted.get(place), _segments(own_streams) or 0
        drops = one.drops if one is not None and place not in looked_at else None
        if not own or drops is None or drops < max(LEAST_SEGMENTS, LEAST_SHARE * own):
            continue
        where = {Spot.NIC_OUT: Where.QUEUE, Spot.NIC_IN: Where.RECEIVER}.get(place.spot, Where.SWITCH)
        name = {Where.QUEUE: f"the queue of {place.owner}", Where.RECEIVER: str(place)}.get(
            where, f"switch {place.owner}, port {'+'.join(place.ports)}"
        )
        yield place, Attribution(where, name, min(drops, own), f"it counted {drops} drops")


def _all_arrived(streams: Sequence[_Stream], balance: Mapping[Place, Reconciliation], lost: int) -> bool:
    """Whether the receivers' interfaces counted everything sent but the `lost` segments known about."""
    ends = {stream.way[-1] for stream in streams}
    if not all(_is_known(balance.get(place)) for place in ends):
        return False
    shorts = [balance[place].short_octets or 0.0 for place in ends]
    slack = (lost + LEAST_SEGMENTS) * _segment_bytes(streams)
    return all(abs(short) <= slack for short in shorts) and sum(shorts) <= slack
