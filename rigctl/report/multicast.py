"""The report part on multicast tests: what each receiver got, and what the switch sent to nodes that had not joined.

What a switch does to a group follows from nodes that had not joined it: those of `unjoined`, or else the receivers
before their join. Without the rights to watch an interface, what reaches it is unknown, and nothing is claimed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import itemgetter
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.messages import MessageResult
from rigctl.base.values import divide, group_by, join_texts, least, most, total
from rigctl.figures import Figure, datagrams
from rigctl.figures import multicast as figures
from rigctl.figures.multicast import OUTSIDE
from rigctl.findings import Finding, Sentence, Statement, Weight, about_nodes, tests
from rigctl.findings import loss as said
from rigctl.findings.text import join_list, numbers_text, pct_text, plural, time_text
from rigctl.records import Flow, MulticastCounts
from rigctl.report.blocks import Column, Part, Table
from rigctl.report.tables import requested
from rigctl.report.tables.columns import (
    ColumnOf,
    count_texts,
    each,
    number_column,
    table_of,
    to_decimals,
    to_digits,
    to_loss,
)
from rigctl.report.tables.messages import SIZE_COLUMN, row_head_of
from rigctl.settings import GROUP, JOIN, LEAVE, RATE, TTL, UNJOINED

SECTION: Final = "multicast"
_METHOD: Final = (
    "The stream is sent once, to a group, from the start to the end. Receivers join after the start and leave before "
    "the end. Their rate, loss, order and jitter are those of the datagrams in between, from the first that arrived."
)
_WATCHING: Final = (
    "Outside: datagrams of the group that reached a node's interface while it had not joined. A packet socket with "
    "PACKET_MR_ALLMULTI counts them by the group's address, as a card drops them otherwise. “–” is unknown, not none."
)
_TIMES: Final = (
    "Join: from IP_ADD_MEMBERSHIP to the first datagram. Leave: from IP_DROP_MEMBERSHIP to the last one at the "
    "interface; “>” if they came until the sender ended."
)
_TESTS: Final = "\0"
"""Stands in a text for the tests that it is on."""
_RATES: Final = to_digits(3, 2)
_QUERY_S: Final = 260.0
"""Within this time a querier is known: twice the interval of queries, and 10 s (RFC 3376, 8.4)."""
_RESPONSE_NS: Final = 10_000_000_000
"""Time in which hosts answer a query, if the query itself is not known (RFC 3376, 8.3)."""
_SLOW_JOIN_US: Final = 200_000
_SLOW_LEAVE_US: Final = 3_000_000
"""Two queries for the group with an interval of a second (RFC 3376, 8.8) take 2 s; a second is to spare."""
_UNASKED: Final = (
    "nobody asked who else is there: no leave reached a querier (with IGMPv2 and MLDv1 only the host that reported "
    "last sends one)"
)
"""After a leave without questions. A host that heard another one report does not report, nor leave (RFC 2236, 3)."""
_FEW: Final = 3
_FEW_SHARE: Final = 0.2
"""A node that missed less than this before its join was sent the group all the time; its first packets may be late."""
_ALIKE: Final = 0.2
"""Receivers whose losses differ by less than this share lost the same datagrams."""


class _Forwarding(StrEnum):
    """The ports to which a switch sends a group, in the words of the answer."""

    SNOOPS = "the switch snoops"
    FLOODS = "the switch floods the group"
    FLOODS_BEFORE = "the switch floods the group before a receiver joins"  # no other node shows what it does later
    FLOODS_UNREGISTERED = "the switch snoops, but floods a group without members"
    UNKNOWN = "snooping unknown"


@dataclass(frozen=True, slots=True)
class _Test:
    """A test's results for its receivers, and for its nodes that did not join."""

    number: int
    joined: Sequence[MessageResult]
    unjoined: Sequence[MessageResult]

    @property
    def outside(self) -> list[MessageResult]:
        """Return the results of nodes of which it is known what reached them without membership."""
        known = [each for each in self.unjoined if each[figures.OUTSIDE_PCT] is not None]
        return known or [each for each in self.joined if each[figures.OUTSIDE_PCT] is not None]

    @property
    def flooded(self) -> list[MessageResult]:
        return [each for each in self.outside if each[OUTSIDE]]

    @property
    def arrived(self) -> bool:
        return any(each[figures.RECEIVED_MBPS] for each in self.joined)

    @property
    def forwarding(self) -> _Forwarding:
        """Return where the switch sends the group."""
        if not self.outside or not self.arrived:
            return _Forwarding.UNKNOWN
        if not any(map(_is_flooded_until_the_end, self.flooded)):
            return _Forwarding.SNOOPS
        if not self.unjoined:
            return _Forwarding.FLOODS_BEFORE
        return _Forwarding.FLOODS_UNREGISTERED if self._is_spared_of_members() else _Forwarding.FLOODS

    def _is_spared_of_members(self) -> bool:
        """Tell whether the nodes that did not join got nothing for about as long as others were members."""
        members_ns = least(figures.membership_ns(flow) for each in self.joined for flow in each.group.flows)
        gaps_ns = [own.before_gap_ns or 0 for each in self.flooded for own in figures.memberships(each.group)]
        return members_ns is not None and min(gaps_ns, default=0) >= (1 - _FEW_SHARE) * members_ns

    @property
    def counts(self) -> list[MulticastCounts]:
        return [own for each in (*self.joined, *self.unjoined) for own in figures.memberships(each.group)]

    @property
    def querier(self) -> str | None:
        """Return the querier with its version: `10.0.0.254 (IGMPv2)`; None if none was seen."""
        source = join_texts(own.querier for own in self.counts)
        versions = join_texts(each[figures.QUERIED] for each in (*self.joined, *self.unjoined))
        if source is None and any(own.group_queries for own in self.counts):
            return "a querier"
        return None if source is None else f"{source} ({versions})"

    @property
    def watched_s(self) -> float | None:
        """Return how long interfaces were watched for queries; None if they were not."""
        spans = [own.ended_ns for own in self.counts if own.queries is not None]
        return max(spans) / 1e9 if spans else None


def part(view: RunView) -> Part:
    """Return the report part on multicast tests; `view` has only these."""
    found = [_test(number, own) for number, own in group_by(view.messages, lambda each: each.cell.number).items()]
    known = [test for test in found if any(result.elapsed_s for result in test.joined)]
    each = [
        (test.number, finding)
        for test in known
        for finding in (*_outside(test), *_querier(test), *_losses(test), *_members(test))
    ]
    findings = [*_answer(known, view.messages), *_merged(each)]
    return Part(findings=tuple(findings), results=_table(view.messages), method=(_METHOD, _WATCHING, _TIMES))


def _test(number: int, results: Sequence[MessageResult]) -> _Test:
    outside = [each.stream in each.cell.unjoined for each in results]
    return _Test(
        number,
        [each for each, apart in zip(results, outside, strict=True) if not apart],
        [each for each, apart in zip(results, outside, strict=True) if apart],
    )


def _merged(found: Sequence[tuple[int, Finding]]) -> Iterator[Finding]:
    """Yield one finding for all tests with the same sentence on the same nodes: that of the test with most of it."""
    for own in group_by(found, lambda each: (each[1].code, each[1].subject)).values():
        numbers = sorted({number for number, _ in own})
        number, worst = max(own, key=lambda each: _amount(each[1]))
        alike = len({_amount(finding) for _, finding in own}) == 1
        named = numbers_text(numbers) + ("" if alike else f", most in test {number}")
        yield replace(worst, text=worst.text.replace(_TESTS, named), subject=tests(numbers))


def _amount(finding: Finding) -> float:
    value = next(iter(finding.numbers.values()), None)
    return float(value) if isinstance(value, int | float) else 0.0


def _answer(found: Sequence[_Test], results: Sequence[MessageResult]) -> Iterator[Finding]:
    """Yield the answer: the rate at the receivers, their loss, and whether the switch snoops, in the fastest test."""
    rated = [test for test in found if test.arrived]
    if not rated:
        return
    best = max(rated, key=lambda test: most(each[figures.RECEIVED_MBPS] for each in test.joined) or 0.0)
    rates = [each[figures.RECEIVED_MBPS] or 0.0 for each in best.joined]
    printed = _RATES([each[figures.RECEIVED_MBPS] for each in results])  # as in the table
    ends = "–".join(dict.fromkeys(map(printed, (min(rates), max(rates)))))
    loss = most(each[datagrams.LOSS] for each in best.joined)
    lost = "loss unknown" if loss is None else "no loss" if not loss else f"loss up to {pct_text(loss)} %"
    low, high = min(rates), max(rates)
    text = f"{plural(len(rates), 'receiver')} of one stream, {ends} Mbit/s each, {lost}"
    snooping = best.forwarding
    yield Finding(
        "multicast",
        f"{text}; {snooping}",
        Weight.ANSWER,
        subject=tests([best.number]),
        numbers={"received_mbps": low, "loss_pct": loss},
        brief=f"{ends} Mbit/s, {snooping}",
        statements=(Statement(text, best.joined, lambda own: low <= (own[figures.RECEIVED_MBPS] or 0.0) <= high),),
    )


def _is_flooded_until_the_end(result: MessageResult) -> bool:
    """Tell whether datagrams came until the node joined or, where it does not, until the sender ended."""
    return any(map(_was_flooded, result.group.flows))


def _was_flooded(flow: Flow) -> bool:
    own, until_ns = flow.membership, figures.sent_until_ns(flow)
    if own is None or own.before_last_ns is None:
        return False
    if own.first_number is not None:  # a sender that is late sends nothing, so that times tell less than numbers
        missing = own.first_number - (own.before or 0)
        return missing <= max(_FEW, _FEW_SHARE * own.first_number)
    return until_ns is not None and until_ns - own.before_last_ns <= figures.quiet_ns(flow)


def _outside(test: _Test) -> Iterator[Finding]:
    """Yield what reached nodes that had not joined the group, and why; or that it is unknown."""
    unknown = [each for each in (test.unjoined or test.joined) if each[OUTSIDE] is None]
    if unknown:
        yield said.GROUP_UNWATCHED.say(about_nodes([_receivers(unknown)]), nodes=_receivers(unknown), tests=_TESTS)
    if not test.outside or not test.arrived:
        return
    if not test.flooded:
        words = {"nodes": _receivers(test.outside), "they": "it" if len(test.outside) == 1 else "they"}
        about = about_nodes([words["nodes"]])
        yield said.GROUP_SNOOPED.say(about, {"outside_datagrams": 0}, tests=_TESTS, **words)
        return
    pct = most(each[figures.OUTSIDE_PCT] for each in test.flooded) or 0.0
    words = {
        "nodes": _receivers(test.flooded),
        "them": "it" if len(test.flooded) == 1 else "them",
        "pct": pct_text(pct),
        "tests": _TESTS,
    }
    about, numbers = about_nodes([words["nodes"]]), {"outside_pct": pct}
    spared = [each for each in test.outside if each not in test.flooded]
    asked_ns = least(own.query_first_ns for own in test.counts)
    last_ns = most(own.before_last_ns for each in test.flooded for own in figures.memberships(each.group)) or 0
    response_ns = most(own.response_ns for own in test.counts) or _RESPONSE_NS
    if test.forwarding is _Forwarding.SNOOPS:
        since = "" if asked_ns is None else f"; {test.querier} first asked for members at {time_text(asked_ns / 1e3)}"
        yield said.GROUP_FLOODED_AT_FIRST.say(about, numbers, until=time_text(last_ns / 1e3), since=since, **words)
    elif test.forwarding is _Forwarding.FLOODS_UNREGISTERED:
        yield said.GROUP_FLOODED_UNREGISTERED.say(about, numbers, **words)
    elif spared:
        yield said.GROUP_FLOODED_TO_SOME.say(about, numbers, others=_receivers(spared), **words)
    elif asked_ns is not None and last_ns < asked_ns + 2 * response_ns:
        when = {"asked": time_text(asked_ns / 1e3), "response": time_text(response_ns / 1e3)}
        yield said.GROUP_FLOODED_NEW_QUERIER.say(about, numbers, querier=test.querier, **when, **words)
    elif test.querier is not None:
        yield said.GROUP_FLOODED.say(about, numbers, querier=test.querier, **words)
    else:
        yield said.GROUP_FLOODED_UNQUERIED.say(about, numbers, watched=_seconds(test.watched_s), **words)


def _querier(test: _Test) -> Iterator[Finding]:
    """Yield who asks for members; or that nobody does, if the test was long enough to tell."""
    reported = join_texts(each[figures.REPORTED] for each in test.joined)
    if test.querier is not None:
        words = {"querier": test.querier, "reported": reported or "unknown versions", "tests": _TESTS}
        yield said.QUERIER_SEEN.say(about_nodes([test.querier]), **words)
    elif test.watched_s is not None and test.watched_s >= _QUERY_S:
        yield said.QUERIER_MISSING.say(watched=_seconds(test.watched_s), tests=_TESTS)


def _losses(test: _Test) -> Iterator[Finding]:
    """Yield who lost datagrams, and what follows from that on where they were lost.

    A stream that stopped while no querier asked was not lost at a place: the switch may have forgotten the member.
    """
    got = [each for each in test.joined if each[figures.RECEIVED_MBPS]]
    for result in test.joined:
        if result not in got:
            words = {"stream": result.stream, "receiver": result.stream.receiver, "tests": _TESTS}
            about = about_nodes([result.stream.receiver])
            others = f"; {_receivers(got)} received it" if got else ""
            yield said.GROUP_NOTHING.say(about, others=others, reported=result[figures.REPORTED] or "unknown", **words)
    if full := [each for each in got if each[datagrams.RECEIVER_DROPS]]:
        yield said.BUFFERS_FULL.say(about_nodes([_receivers(full)]), tests=f"{_TESTS} ({_receivers(full)})")
    lossy = {
        result.stream.receiver: loss
        for result in got
        if (loss := result[datagrams.LOSS]) and (test.querier or not result[figures.SILENCE])
    }
    if not lossy:
        return
    low, high = min(lossy.values()), max(lossy.values())
    about, numbers = about_nodes(sorted(lossy)), {"loss_pct": high}
    if len(lossy) == 1 < len(got):
        yield said.GROUP_LOST_AT_ONE.say(about, numbers, receiver=next(iter(lossy)), pct=pct_text(high), tests=_TESTS)
    elif len(lossy) == len(got) > 1 and high - low <= _ALIKE * high:
        sender = got[0].stream.sender
        yield said.GROUP_LOST_AT_ALL.say(about, numbers, sender=sender, pct=pct_text(high), tests=_TESTS)
    else:
        texts = join_list([f"{pct_text(loss)} % ({node})" for node, loss in lossy.items()])
        yield said.GROUP_LOST.say(about, numbers, each=texts, tests=_TESTS)


def _members(test: _Test) -> Iterator[Finding]:
    """Yield receivers that waited after their join, whose stream stopped, or to whom it came after their leave."""

    def say(sentence: Sentence, figure: Figure[float], own: Sequence[MessageResult], **words: object) -> Finding:
        longest_us = most(result[figure] for result in own) or 0.0
        named = {"receivers": _receivers(own), "time": time_text(longest_us), "tests": _TESTS}
        return sentence.say(about_nodes([_receivers(own)]), {figure.name: longest_us}, **named | words)

    if slow := [one for one in test.joined if _is_beyond(one, figures.JOIN_TIME, _SLOW_JOIN_US) and not one[OUTSIDE]]:
        yield say(said.JOIN_SLOW, figures.JOIN_TIME, slow)
    if stopped := [one for one in test.joined if one[figures.SILENCE]]:
        cause = "" if test.querier else "; no querier asked for members, so that the switch may have forgotten them"
        yield say(said.GROUP_STOPPED, figures.SILENCE, stopped, cause=cause)
    if test.forwarding not in (_Forwarding.SNOOPS, _Forwarding.UNKNOWN):
        return  # it sends the group to everybody anyway
    if slow := [one for one in test.joined if _is_beyond(one, figures.LEAVE_TIME, _SLOW_LEAVE_US)]:
        yield say(said.LEAVE_SLOW, figures.LEAVE_TIME, slow, asked=_asked(slow))
    if going := [one for one in test.joined if (_after_us(one) or 0.0) > 0]:
        after_us = least(map(_after_us, going)) or 0.0
        words = {"time": f"more than {time_text(after_us)}"}
        sentence = said.LEAVE_OPEN if after_us <= _SLOW_LEAVE_US else said.LEAVE_SLOW
        yield say(sentence, figures.LEAVE_TIME, going, asked=_asked(going), **words)


def _is_beyond(result: MessageResult, figure: Figure[float], bound_us: float = 0.0) -> bool:
    quiet_ns = most(figures.quiet_ns(flow) for flow in result.group.flows) or 0.0
    return (result[figure] or 0.0) > bound_us + quiet_ns / 1e3


def _after_us(result: MessageResult) -> float | None:
    """Return the time from the leave to the end if datagrams came until the end; None if they stopped, or unknown."""
    ended = [figures.is_stopped(flow) for flow in result.group.flows]
    if False not in ended:
        return None
    owns = figures.memberships(result.group)
    return least((own.ended_ns - own.left_ns) / 1e3 for own in owns if own.left_ns is not None)


def _asked(results: Sequence[MessageResult]) -> str:
    queries = total(own.group_queries for one in results for own in figures.memberships(one.group))
    return "a querier asked who else is there" if queries else _UNASKED


def _receivers(results: Iterable[MessageResult]) -> str:
    return join_list(list(dict.fromkeys(result.stream.receiver for result in results)))


def _rate_mbps(result: MessageResult) -> float | None:
    rate_bps = result.cell[RATE]
    return rate_bps / 1e6 if isinstance(rate_bps, int) else None


def _seconds(time_s: float | None) -> str:
    return "the time" if time_s is None else f"{time_s:.3g} s"


def _leave_text(result: MessageResult) -> str | None:
    """Return the time of a leave in ms; with > if datagrams came until the end."""
    if (after_us := _after_us(result)) is not None:
        return f"> {after_us / 1e3:.0f}"
    leave_us = result[figures.LEAVE_TIME]
    return None if leave_us is None else f"{leave_us / 1e3:.0f}"


def _table(results: Sequence[MessageResult]) -> Table:
    """Return the table with a row for each test and pair. Where the rate differs, phones show it instead of leaves."""
    differs = len({_rate_mbps(row) for row in results}) > 1
    columns: list[ColumnOf[MessageResult]] = [
        requested.TEST_COLUMN.of,
        requested.CONDITION_COLUMN.of,
        each(Column("Pair", "", "requested", minor=-1, words=True), lambda row: str(row.stream)),
        each(Column("Joins", "", "requested"), lambda row: "no" if row.stream in row.cell.unjoined else "yes"),
        SIZE_COLUMN,
        each(Column("Rate", "Mbit/s", "requested", minor=-1 if differs else 0), _rate_mbps, "{:g}".format),
        *(requested.varying_column(setting).of for setting in (UNJOINED, JOIN, LEAVE, GROUP, TTL)),
        *(setting.of for setting in requested.OF_ALL),
        number_column("Received", "Mbit/s", itemgetter(figures.RECEIVED_MBPS), _RATES, "measured", -1),
        number_column("Loss", "%", itemgetter(datagrams.LOSS), to_loss, "measured", -1),
        number_column("Reordered", "", itemgetter(datagrams.REORDERED), count_texts, "measured", 1),
        number_column("Jitter", "µs", itemgetter(datagrams.JITTER), to_decimals(0), "measured", 1),
        number_column("Join", "ms", lambda row: divide(row[figures.JOIN_TIME], 1e3), to_decimals(1), "measured"),
        each(Column("Leave", "ms", "measured", minor=0 if differs else -1), _leave_text),
        number_column("Outside", "%", itemgetter(figures.OUTSIDE_PCT), to_loss, "measured", -1),
        each(Column("Queries", "", "measured", minor=1), lambda row: row[figures.QUERIES]),
    ]
    return table_of(results, columns, row_head_of(results), label="Multicast")
