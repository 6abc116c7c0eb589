"""Judge a nightly run: find new, persisting and suspected changes of level in the series of nights.

A change is reported with possible causes: changes of the setup, and a change of a node or of another series.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from math import log, prod
from statistics import median
from time import localtime
from typing import Final, TypeAlias

from rigctl.analysis.nights.comparison import FigureSubject
from rigctl.analysis.nights.history import Nights, NightSeries, load_figures, load_nights, nights_from
from rigctl.analysis.nights.nodes import ALIKE, APART, NodePairs, changed_pairs, node_pairs_of
from rigctl.analysis.nights.setup_changes import RESTART, SCENARIO_FILE, ChangeSource, SetupChange, find_setup_changes
from rigctl.base.errors import InputError
from rigctl.base.values import group_by
from rigctl.model.statistics.changes import (
    CERTAINLY_BELOW,
    DRIFT,
    LEAST_NIGHTS,
    Regression,
    Rules,
    Step,
    compare_last_night,
    is_significant,
    judge_series,
)
from rigctl.model.statistics.weekly import Weekly, find_weekly
from rigctl.records import CONFIRMS, Acceptance, RunInfo
from rigctl.store import Store

_LATE: Final = 7  # a pair that changed with its node may show this at most this number of nights earlier or later
_FIRST_NODES: Final = 8  # nodes with which a search for the fewest causes begins
_HELD: Final = 7  # number of nights after which a better level becomes the normal level
_DATE_DIGITS: Final = 8
"""A `--baseline` with this many digits is the start of a run's id, such as 20261122, not a number of nights."""


@dataclass(frozen=True, slots=True)
class Shift:
    """A change of the level of a series. `explains` has changes of other series at the same time with the same cause.

    The change is only suspected if its `why_not` is `ONE_NIGHT`.
    """

    series: NightSeries
    change: Step
    since: RunInfo  # first run on the new level
    facts: tuple[SetupChange, ...] = ()  # changes of the setup since the last run on the old level
    explains: tuple["Shift", ...] = ()
    returns: RunInfo | None = None  # first run of the earlier change that this change undoes, if any
    pairs: tuple[NightSeries, ...] = ()  # for a node: its pairs that changed together

    @property
    def ratio(self) -> float:
        return self.change.ratio

    @property
    def better(self) -> bool:
        return self.change.better

    @property
    def usual(self) -> float | None:
        """Return the level that a point of 1 stands for, in the unit of the figure; for a node, of its median pair.

        None if the pairs of a node are unknown. The points of other series are in the unit of the figure.
        """
        if self.series.subject.node is None:
            return 1.0
        levels = []
        for night, point in enumerate(self.series.points):
            values = [value for own in self.pairs if (value := own.points[night].value) is not None]
            if point.value and values:
                levels.append(median(values) / point.value)
        return median(levels) if levels else None

    @property
    def confirmed(self) -> bool:
        """Return True if the night that revealed this change was measured a second time."""
        return self.series.points[self.change.found].second is not None

    @property
    def found(self) -> int:
        """Return the index of the earliest night that revealed this change or one of the changes that it explains."""
        return min([self.change.found, *(shift.change.found for shift in self.explains)])

    @property
    def weight(self) -> float:
        """Return the largest |ln(ratio)| of this change and of the changes that it explains."""
        return max(abs(log(shift.ratio)) for shift in (self, *self.explains))

    @property
    def key(self) -> "ShiftKey":
        return self.series.subject, self.change.at

    def of_changed_tests(self) -> "Shift":
        """Return this change with the series of its node restricted to the tests that changed."""
        changed = {number for own in (*self.pairs, *(shift.series for shift in self.explains)) for number in own.tests}
        return replace(self, series=replace(self.series, tests=tuple(sorted(changed)))) if self.pairs else self


ShiftKey: TypeAlias = tuple[FigureSubject, int]
"""The series of a change and its first night."""


def shifts_of(series: NightSeries, changes: Sequence[Step], nights: Nights, bound: float) -> Iterator[Shift]:
    """Yield the changes of a series with their setup changes. Levels that differ by less than `bound` are equal."""
    runs = nights.runs
    for number, change in enumerate(changes):
        facts = () if change.gradual else _facts_before(series, change.at, runs)
        same = [own for own in changes[:number] if abs(change.after / own.before - 1) < bound]
        returns = runs[same[-1].at] if same else None
        yield Shift(series, series.of_figure(change), runs[change.at], facts, returns=returns)


def _facts_before(series: NightSeries, night: int, runs: Sequence[RunInfo]) -> tuple[SetupChange, ...]:
    """Return how the setup differs from that of the last measured night: in nights without a value it was changed."""
    last = next((at for at in reversed(range(night)) if series.points[at].value is not None), None)
    return () if last is None else tuple(find_setup_changes(runs[last], runs[night]))


def _with_own_drifts(events: Sequence[Shift], runs: Sequence[RunInfo]) -> Iterator[Shift]:
    """Yield changes by cause. A step is part of a drift only beside another of the same cause, not that of its node."""
    every = group_by(events, lambda own: own.series.subject)
    for event in events:
        beside = [own for own in every[event.series.subject] if own is not event and own.better == event.better]
        if event.change.gradual and all(abs(own.change.at - event.change.at) > DRIFT for own in beside):
            facts = _facts_before(event.series, event.change.at, runs)
            yield replace(event, change=replace(event.change, gradual=False), facts=facts)
        else:
            yield event


def group_by_cause(shifts: Iterable[Shift]) -> tuple[Shift, ...]:
    """Return one change per cause: the change of a node, of a test of which most pairs changed, or of a single pair.

    All other changes are in `explains` of the change that causes them. If most pairs of a test changed, the total
    of the test explains these pairs; otherwise the pair that changed most explains the total.
    """
    left = _with_causes(list(shifts))
    leaders = [shift for shift in left if _is_of_node(shift.series)]
    explained: dict[int, list[Shift]] = {}  # explained changes by id() of the change that explains them
    explained_by: dict[int, Shift] = {}

    def explain(shift: Shift, leader: Shift) -> None:
        explained.setdefault(id(leader), []).append(shift)
        explained_by[id(shift)] = leader

    pairs_alone = [own for own in left if not (_is_of_node(own.series) or _is_total_of_streams(own.series))]
    for most_apart in (APART, _LATE):  # a pair's change some nights away is its node's only if it has no nearer one
        seen = {(id(leader), own.series.subject) for leader in leaders for own in explained.get(id(leader), ())}
        for shift in [own for own in pairs_alone if id(own) not in explained_by]:
            mine = [own for own in leaders if (id(own), shift.series.subject) not in seen]
            leader = _explain_by_node(shift, mine, most_apart)
            if leader is not None:
                explain(shift, leader)
    by_node = dict(explained_by)
    for total in [own for own in left if _is_total_of_streams(own.series)]:
        pairs = [own for own in left if _adds_to(own, total)]
        if 2 * len(pairs) > len(total.series.cell.streams) and not any(id(own) in by_node for own in pairs):
            for pair in pairs:
                explain(pair, total)
        elif pairs:
            main = max(pairs, key=lambda own: abs(log(own.ratio)))
            explain(total, by_node.get(id(main), main))
    kept = [shift for shift in left if id(shift) not in explained_by]
    return tuple(replace(shift, explains=tuple(explained.get(id(shift), ()))) for shift in kept)


def _is_of_node(series: NightSeries) -> bool:
    return series.subject.node is not None


def _is_total_of_streams(series: NightSeries) -> bool:
    return series.subject.node is None and series.subject.stream is None and len(series.cell.streams) > 1


def _with_causes(shifts: Sequence[Shift]) -> list[Shift]:
    """Return the changes, without those of nodes that are not the cause.

    These are nodes whose pairs changed because of other nodes, and all nodes in a role if most of them changed alike.
    """
    nodes = sorted((shift for shift in shifts if _is_of_node(shift.series)), key=lambda own: own.change.at)
    dates: dict[FigureSubject, list[int]] = {}
    for shift in shifts:
        dates.setdefault(shift.series.subject, []).append(shift.change.at)
    chosen: list[Shift] = []
    while nodes:
        together = [nodes.pop(0)]
        while found := [own for own in nodes if any(_at_once(own, other) for other in together)]:
            together += found
            nodes = [own for own in nodes if all(own is not other for other in found)]
        chosen += _fewest_causes(together, dates)
    causes = {id(shift) for shift in chosen if _count_alike(shift, chosen) <= max(1, shift.series.peers // 2)}
    return [shift for shift in shifts if not _is_of_node(shift.series) or id(shift) in causes]


def _fewest_causes(nodes: Sequence[Shift], dates: Mapping[FigureSubject, Sequence[int]]) -> list[Shift]:
    """Return those of `nodes`, which changed at once, that explain the changed pairs with the fewest causes.

    A node is a cause only if more than half of its changed pairs are not explained by another node. Of several nodes
    the one is preferred whose pairs changed nearest to its own night; `dates` has the nights of all changes.
    """
    pairs = {id(own): {pair.subject for pair in own.pairs} for own in nodes}
    every = set[FigureSubject]().union(*pairs.values())

    def apart(own: Shift) -> int:
        """Return the sum of nights between the change of a node and those of its pairs."""
        nearest = (min((abs(at - own.change.at) for at in dates.get(pair, ())), default=0) for pair in pairs[id(own)])
        return sum(min(nights, APART) for nights in nearest)

    largest = sorted(nodes, key=lambda own: (-len(pairs[id(own)]), apart(own), -abs(log(own.ratio))))

    def choose(first: Shift) -> tuple[int, list[Shift]]:
        chosen, explained = [first], set(pairs[id(first)])
        while True:
            own = max(largest, key=lambda own: len(pairs[id(own)] - explained))
            if 2 * len(pairs[id(own)] - explained) <= len(pairs[id(own)]):
                return len(chosen) + len(every - explained), chosen
            chosen.append(own)
            explained |= pairs[id(own)]

    return min((choose(first) for first in largest[:_FIRST_NODES]), key=lambda found: found[0])[1]


def _count_alike(shift: Shift, nodes: Iterable[Shift]) -> int:
    """Return how many nodes changed in the same role, tests and direction at the same time, this node included."""
    subject = replace(shift.series.subject, node=None)
    return sum(_at_once(own, shift) and replace(own.series.subject, node=None) == subject for own in nodes)


def _at_once(one: Shift, other: Shift) -> bool:
    same = one.series.subject.metric == other.series.subject.metric and one.better == other.better
    return same and abs(one.change.at - other.change.at) <= APART


def _adds_to(pair: Shift, total: Shift) -> bool:
    return pair.series.subject.stream is not None and pair.series.tests == total.series.tests and _at_once(pair, total)


def _explain_by_node(shift: Shift, leaders: Iterable[Shift], most_apart: int) -> Shift | None:
    """Return the change of a node that explains that of a pair; None if none does, or the pair changed far more.

    If both nodes of the pair changed, the pair has both changes.
    """
    own = [leader for leader in leaders if _has_end(shift, leader, most_apart)]
    together = sum(abs(log(leader.ratio)) for leader in own)
    return own[0] if own and abs(log(shift.ratio)) <= ALIKE * together + 2 * shift.change.noise else None


def _has_end(shift: Shift, leader: Shift, most_apart: int) -> bool:
    """Tell whether a pair's change is of the same time, direction and tests as that of a node at one of its ends."""
    subject, stream = leader.series.subject, shift.series.stream
    if stream is None or subject.metric != shift.series.subject.metric or shift.better != leader.better:
        return False
    together = most_apart <= APART or any(own.subject == shift.series.subject for own in leader.pairs)
    if not together or abs(shift.change.at - leader.change.at) > most_apart:
        return False
    end = stream.sender if subject.role == "sending" else stream.receiver
    return subject.node == end and set(shift.series.tests) <= set(leader.series.tests)


@dataclass(frozen=True, slots=True)
class WeeklySeries:
    """A series with a weekly pattern. `since` is its first run in the pattern; `new`: this night completed it."""

    series: NightSeries
    pattern: Weekly
    since: RunInfo
    new: bool


@dataclass(frozen=True, slots=True)
class Regressions:
    """The verdict on one nightly run. Changes for the worse come first, the largest first; `history` is by time."""

    run: RunInfo
    nights: Nights
    rules: Rules
    news: tuple[Shift, ...]
    standing: tuple[Shift, ...] = ()  # changes that earlier nights showed, and no user accepted
    suspected: tuple[Shift, ...] = ()
    history: tuple[Shift, ...] = ()
    levels: tuple[Acceptance, ...] = ()  # nights whose levels a user accepted as normal
    judged: int = 0  # number of measured series with enough nights for a verdict
    too_few: int = 0  # number of measured series with too few nights
    baseline: RunInfo | None = None  # run that `--baseline` names; None if no run
    given: str | None = None  # text of the option `--baseline`
    visible: float | None = None  # smallest change, as a share, that is found even in the noisiest series
    weekly: tuple[WeeklySeries, ...] = ()  # weekly patterns, which are no changes; the largest first

    @property
    def accepted(self) -> Acceptance | None:
        """Return the record of the last acceptance of levels; None if no levels were accepted."""
        return max(self.levels, key=lambda level: level.accepted_at, default=None)

    @property
    def worse(self) -> tuple[Shift, ...]:
        return tuple(shift for shift in self.news if not shift.better)

    @property
    def failed(self) -> bool:
        """Return True if a series is worse than its accepted level, by a new or a persisting change."""
        return any(not shift.better for shift in (*self.news, *self.standing))

    @property
    def confirmed(self) -> bool:
        """Return True if a second run confirms the measurements of this run."""
        return self.run.run in self.nights.confirmations

    @property
    def to_confirm(self) -> tuple[int, ...]:
        """Return the numbers of the tests that need a second measurement for a verdict."""
        seen = [own.series for shift in self.news for own in (*shift.explains, shift)]
        seen += [own.series for own in self.suspected]
        left = [series for series in seen if series.points[-1].second is None]
        pairs = {number for series in left if series.subject.node is None for number in series.tests}
        nodes = [set(series.tests) for series in left if series.subject.node is not None]
        return tuple(sorted(pairs.union(*(tests for tests in nodes if not tests & pairs))))


def judge_run(store: Store, run: RunInfo, *, baseline: str | None = None, rules: Rules | None = None) -> Regressions:
    """Return the verdict on `run` compared with `baseline`, or with all nights before it.

    `baseline` is a run (its id, or `TAG=VALUE` for its tag), or the number of nights to compare with; None: all nights.
    A run that confirms `run` (tagged `CONFIRMS`) is included: call this function again after such a run.
    Raise `InputError` for an invalid baseline.
    """
    rules = rules or Rules()
    seen = load_nights(store, run)
    reference = _baseline_of(store, run, baseline)
    if isinstance(reference, RunInfo):
        return replace(_against(store, seen, reference, rules), given=baseline)
    if reference is not None:
        seen = nights_from(seen, len(seen.runs) - 1 - reference)
    return replace(judge_nights(seen, store.history.accepted(), rules), given=baseline)


def judge_nights(seen: Nights, accepted: Iterable[Acceptance], rules: Rules | None = None) -> Regressions:
    """Return the verdict on the last night of `seen`. `accepted` may include acceptances of other scenarios."""
    rules = rules or Rules()
    runs = {info.run for info in seen.runs}
    found = {level.run: level for level in accepted if level.run in runs}
    at = [night for night, info in enumerate(seen.runs) if info.run in found]
    weekly = list(_weekly_patterns(seen, rules))
    altered = _nights_after_changes(seen)
    series = _without_weekly(seen, weekly)
    verdicts = judge_series([own.points for own in series], rules, accepted=at, altered=altered)
    judged = list(zip(series, verdicts, strict=True))
    nodes = node_pairs_of(judged, len(seen.runs), CERTAINLY_BELOW * log(1 + rules.bound))
    points = [node.series.points for node in nodes]
    of_nodes = judge_series(points, rules, accepted=at, altered=altered, beside=len(judged))
    of_nodes = [_with_shared(verdict, node) for node, verdict in zip(nodes, of_nodes, strict=True)]
    pairs = [*((node.series, verdict) for node, verdict in zip(nodes, of_nodes, strict=True)), *judged]
    seen = replace(seen, series=(*(node.series for node in nodes), *seen.series))
    members = {node.series.subject: node for node in nodes}
    events = group_by_cause(
        _with_pairs(shift, members)
        for series, verdict in pairs
        for shift in shifts_of(series, verdict.changes, seen, rules.bound)
    )
    events = tuple(_with_own_drifts(events, seen.runs))
    last, latest = len(seen.runs) - 1, max(at, default=-1)
    # A pair may show the change of its node some nights later. This is not new: `event.found` is the earliest night.
    since_accepted = [event for event in events if event.found > latest]
    of_tonight = [own for event in events if event.found == last for own in (event, *event.explains)]
    suspicions = {series.subject: verdict.suspicion for series, verdict in pairs if verdict.suspicion is not None}
    standing = _all_standing(since_accepted, rules, {own.key for own in of_tonight}, suspicions)
    suspected = [
        Shift(series, series.of_figure(verdict.suspicion), seen.runs[-1])
        for series, verdict in judged
        if verdict.suspicion is not None
    ]
    tonight = [(series, verdict) for series, verdict in pairs if series.points[-1].value is not None]
    history = sorted(events, key=lambda shift: (shift.change.at, -shift.weight))
    return Regressions(
        run=seen.runs[-1],
        nights=seen,
        rules=rules,
        news=_worst_first(_of_tonight([shift for shift in events if shift.found == last], rules)),
        standing=_worst_first(group_by_cause(standing)),
        suspected=_without_totals(suspected, of_tonight),
        history=tuple(shift.of_changed_tests() for shift in history),
        levels=tuple(found.values()),
        judged=sum(verdict.noise is not None for _, verdict in tonight),
        too_few=sum(verdict.noise is None for _, verdict in tonight),
        visible=max((own.visible for series, own in tonight if own.visible and not series.subject.node), default=None),
        weekly=tuple(sorted(weekly, key=lambda own: -abs(log(own.pattern.ratio)))),
    )


def _weekly_patterns(seen: Nights, rules: Rules) -> Iterator[WeeklySeries]:
    """Yield the series that are off on certain weekdays, by the local time at which each run began."""
    times = [localtime(info.started_at) for info in seen.runs]
    days = [date(time.tm_year, time.tm_mon, time.tm_mday).toordinal() for time in times]
    for series in seen.series:
        if (pattern := find_weekly(series.points, days, rules.bound)) is not None:
            before = find_weekly(series.points[:-1], days[:-1], rules.bound)
            new = before is None or before.ratios.keys() != pattern.ratios.keys()
            yield WeeklySeries(series, pattern, seen.runs[min(pattern.nights)], new)


def _without_weekly(seen: Nights, weekly: Iterable[WeeklySeries]) -> list[NightSeries]:
    """Return each series as if its weekly pattern, if it has one, did not exist."""
    patterns = {own.series.subject: own.pattern for own in weekly}
    return [
        replace(own, points=patterns[own.subject].without(own.points)) if own.subject in patterns else own
        for own in seen.series
    ]


def _with_shared(verdict: Regression, node: NodePairs) -> Regression:
    """Return the verdict on a node, only with the changes that more than half of its pairs show."""
    shared = tuple(own for own in verdict.changes if changed_pairs(node.members, own.at, own.ratio))
    return replace(verdict, changes=shared)


def _with_pairs(shift: Shift, nodes: Mapping[FigureSubject, NodePairs]) -> Shift:
    node = nodes.get(shift.series.subject)
    if node is None:
        return shift
    return replace(shift, pairs=changed_pairs(node.members, shift.change.at, shift.ratio))


def _without_totals(found: Sequence[Shift], changed: Sequence[Shift]) -> tuple[Shift, ...]:
    """Return suspected changes, the worst first, without totals of tests that have a changed or suspected pair."""
    every = [own.series for own in (*found, *changed)]
    parts = {(series.tests, series.subject.metric) for series in every if series.subject.stream is not None}
    return _worst_first(
        own
        for own in found
        if own.series.subject.stream is not None or (own.series.tests, own.series.subject.metric) not in parts
    )


def _worst_first(shifts: Iterable[Shift]) -> tuple[Shift, ...]:
    """Return changes for the worse, which decide the exit code, before those for the better; each largest first."""
    ordered = sorted(shifts, key=lambda shift: (shift.better, -shift.weight))
    return tuple(shift.of_changed_tests() for shift in ordered)


def _by_subject(shifts: Iterable[Shift]) -> Iterable[list[Shift]]:
    """Return a list of changes for each series, the earliest change first."""
    return group_by(sorted(shifts, key=lambda own: own.change.at), lambda own: own.series.subject).values()


def _of_tonight(shifts: Sequence[Shift], rules: Rules) -> list[Shift]:
    """Return tonight's net change of each series: steps in one direction are merged, undone steps are left out."""
    kept = []
    for own in _by_subject(shifts):
        steps = _last_in_one_direction(own)
        net = replace(steps[-1].change, at=steps[0].change.at, before=steps[0].change.before)
        taken_back = len(steps) < len(own) and abs(net.after / own[0].change.before - 1) < rules.bound
        if abs(net.ratio - 1) >= rules.bound and not taken_back:
            returns = steps[-1].returns if len(steps) == 1 else None
            kept.append(replace(steps[-1], change=net, since=steps[0].since, facts=steps[0].facts, returns=returns))
    return kept


def _last_in_one_direction(shifts: Sequence[Shift]) -> Sequence[Shift]:
    first = len(shifts) - 1
    while first and shifts[first - 1].better == shifts[-1].better:
        first -= 1
    return shifts[first:]


def _all_standing(
    events: Sequence[Shift], rules: Rules, found_tonight: Collection[ShiftKey], suspicions: Mapping[FigureSubject, Step]
) -> Iterator[Shift]:
    """Yield what stands of each series. A pair's own changes, and those of each of its nodes, are judged apart."""
    nodes = {own.key: event.series.subject for event in events if _is_of_node(event.series) for own in event.explains}
    for shifts in _by_subject([own for event in events for own in (event, *event.explains)]):
        suspicion = suspicions.get(shifts[0].series.subject)
        tonight = 1.0 if suspicion is None else suspicion.ratio
        for part in group_by(shifts, lambda own: nodes.get(own.key)).values():
            others = [own for own in shifts if all(own is not other for other in part)]
            standing = _standing(_without_others(part, others), rules, found_tonight, tonight)
            if standing is not None:
                yield standing


def _without_others(shifts: Sequence[Shift], others: Sequence[Shift]) -> list[Shift]:
    """Return changes of a series as if `others`, changes of the same series, had lasted from the first night on."""
    found = []
    for shift in shifts:
        later = prod(own.ratio for own in others if own.change.at > shift.change.at)
        change = replace(shift.change, before=shift.change.before * later, after=shift.change.after * later)
        found.append(replace(shift, change=change))
    return found


def _standing(
    shifts: Sequence[Shift], rules: Rules, found_tonight: Collection[ShiftKey], tonight: float
) -> Shift | None:
    """Return the change from a series' normal level to its present level; None if below the bound, or found tonight.

    `shifts` are the changes of a series since its level was accepted. `found_tonight` has the key of each new change.
    `tonight` is the ratio of the last night to the present level, if they differ: a level that is back tonight does not
    stand, though only the next night decides whether it has ended.

    Users do not accept gains, so the normal level is the best of the accepted level and of later levels that lasted
    seven nights. The change starts at the first night after which every level differs by the bound or more. So a dip
    that ended by itself, or a gain, is not part of the change.
    """
    now, better = shifts[-1].change.after, shifts[-1].series.better
    held = [shifts[0].change.before]
    held += [one.change.after for one, two in pairwise(shifts) if two.change.at - one.change.at >= _HELD]
    normal = held[0]
    for level in held:
        normal = level if better(level / normal) else normal
    if better(now / normal):  # the best level so far is compared with the accepted level
        normal = held[0]

    def differs(level: float) -> bool:
        return abs(level / normal - 1) >= rules.bound and better(level / normal) == better(now / normal)

    if not (differs(now) and differs(now * tonight)):
        return None
    first = len(shifts) - 1
    while first and differs(shifts[first - 1].change.after):
        first -= 1
    if shifts[first].key in found_tonight:
        return None
    change = replace(shifts[-1].change, at=shifts[first].change.at, before=normal)
    since, facts, pairs = shifts[first].since, shifts[first].facts, shifts[first].pairs
    return replace(shifts[-1], change=change, since=since, facts=facts, explains=(), returns=None, pairs=pairs)


def _nights_after_changes(seen: Nights) -> list[int]:
    """Return the indices of measured nights whose setup differs from that of the measured night before."""
    measured = [
        night for night in range(len(seen.runs)) if any(own.points[night].value is not None for own in seen.series)
    ]
    return [
        night
        for before, night in pairwise(measured)
        if any(map(_is_a_cause, find_setup_changes(seen.runs[before], seen.runs[night])))
    ]


def _is_a_cause(change: SetupChange) -> bool:
    """Tell whether a change of the setup may change a level. A restart of a node and the options of a run may not."""
    if change.source is ChangeSource.SCENARIO:
        return change.name == SCENARIO_FILE
    return not (change.source is ChangeSource.FACT and change.name == RESTART)


def _baseline_of(store: Store, run: RunInfo, text: str | None) -> RunInfo | int | None:
    """Return the run or number of nights that `--baseline` gives; None without it. Raise `InputError` if invalid."""
    if text is None:
        return None
    if text.isdigit() and len(text) < _DATE_DIGITS:
        if int(text) < LEAST_NIGHTS:
            raise InputError(f"--baseline {text}: expected at least {LEAST_NIGHTS} nights, a run's id or TAG=VALUE")
        return int(text)
    if "=" not in text:
        named = store.run(text)
        if named.run == run.run:
            raise InputError(f"--baseline {text} is the run that is to be judged. Name another run")
        return named
    name, _, value = text.partition("=")
    for info in store.latest_first():
        same = info.plan.scenario_name == run.plan.scenario_name and info.run != run.run
        if same and info.tags.get(name) == value and CONFIRMS not in info.tags:
            return info
    raise InputError(
        f"--baseline {text}: no other run of {run.plan.scenario_name} has this tag. `rigctl runs` lists the tags"
    )


def _against(store: Store, seen: Nights, baseline: RunInfo, rules: Rules) -> Regressions:
    """Return the verdict on the last night against the run `baseline`. Noise is estimated from the nights before."""
    run, damaged = seen.runs[-1], dict[str, str]()
    values = load_figures(store, [baseline], damaged)
    if damaged:
        raise InputError(damaged[baseline.run])
    facts = tuple(find_setup_changes(baseline, run))
    differences = [
        (series, compare_last_night(series.points, before))
        for series in seen.series
        if series.points[-1].value is not None and (before := values[baseline.run].get(series.subject)) is not None
    ]
    judged = [(series, *difference) for series, difference in differences if difference is not None]
    significant = is_significant([p for _, _, p in judged], rules.false_rate)
    shifts = [
        Shift(series, series.of_figure(change), run, facts)
        for (series, change, _), counts in zip(judged, significant, strict=True)
        if counts and abs(change.ratio - 1) >= rules.bound and abs(log(change.ratio)) >= rules.noises * change.noise
    ]
    too_few = len(differences) - len(judged)
    news = _worst_first(group_by_cause(shifts))
    return Regressions(run, seen, rules, news, judged=len(judged), too_few=too_few, baseline=baseline)
