"""Changes of level in series of nightly values, found night by night as they come.

Each level has an anchor: the median of its first nights. The last nights are compared with it, in windows of two nights
and more, so that a slow drift is found as well as a step. A night counts as it is least bad: a second measurement of
the same night that contradicts the first sets it aside. Two nights must agree, unless something else of the night is
known to have changed, or the change is very large: one bad night is none. The noise of a series is robust (median
absolute deviation), and p-values are corrected over the series of a night (Benjamini and Hochberg, 1995).
docs/measured/regressions.md has the figures, and those of other detectors on the same series.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from math import exp, log, sqrt
from statistics import median
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Ask: TypeAlias = Callable[[int, int], float | None]
"""Of a series, by its place, and a night."""

WINDOWS: Final = (2, 3, 5, 7)
"""Nights that are compared with the anchor."""
ANCHOR: Final = 20
"""Nights that an anchor is taken of, at most."""
LEAST_NIGHTS: Final = 5
"""Fewer nights do not show the noise of a series."""
NOISE_NIGHTS: Final = 40
_FEW: Final = 3
"""Nights that may all be bad by chance: they must be near each other, too."""
_LEAST_NOISE: Final = 3e-4
"""Share: no series is taken to be quieter."""
_MAD: Final = 1.4826
"""Standard deviation of normal noise ÷ its median absolute deviation."""
_OF_MEDIAN: Final = 1.2533
"""Standard error of a median ÷ that of a mean, of normal noise."""
_LEAST_DRIFT: Final = 8
"""Nights."""
_MUCH_BETTER: Final = 0.7
"""Share of the distance of a step: a drift that is nearer than this is taken for one."""
_CERTAINLY_BELOW: Final = 0.75
"""Share of the bound: a smaller change is none, however noisy its series."""


@dataclass(frozen=True, slots=True)
class Point:
    """One night of a series; `second` is what was measured to confirm it. None: not measured."""

    value: float | None
    second: float | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """`bound`: the least change that matters, a share. `false_rate`: of Benjamini and Hochberg."""

    bound: float = 0.02
    false_rate: float = 1e-3
    noises: float = 4.0  # that each night of a window is away from the anchor, at least
    spread: float = 4.0  # noises that two or three nights which agree are apart, at most
    bad_nights: float = 0.08  # share of a level's nights: of more, two that agree are not enough
    at_once: float = 0.20  # a change of this size, confirmed, needs no second night
    windows: tuple[int, ...] = WINDOWS


@dataclass(frozen=True, slots=True)
class Change:
    """A series changed from one level to another, in its own unit."""

    at: int  # the first night on the new level
    found: int  # the night in which it was found
    before: float
    after: float
    noise: float  # standard deviation from night to night, a share
    p: float
    gradual: bool = False  # a drift: `at` is about where it began

    @property
    def ratio(self) -> float:
        return self.after / self.before


@dataclass(frozen=True, slots=True)
class Suspicion:
    """The last night differs as a change would, but it is only one night."""

    value: float
    level: float
    noise: float
    confirmed: bool  # a second measurement of the same night agrees

    @property
    def ratio(self) -> float:
        return self.value / self.level


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one series: all changes, the earliest first, and what is suspected of the last night."""

    changes: tuple[Change, ...] = ()
    suspicion: Suspicion | None = None
    level: float | None = None  # of now; None: too few nights
    noise: float | None = None


@dataclass(slots=True)
class _Watched:
    """A series as far as it has been looked at: logarithms of the nights' values, None where there is none."""

    points: Sequence[Point]
    start: int = 0  # of its level
    logs: list[float | None] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    anchored: tuple[int, int] = (0, 0)  # where the level of `anchor` begins, and of how many nights it is
    anchor: float = 0.0
    known: list[int] = field(default_factory=list)  # the nights of the level that have a value

    def add(self, value: float | None) -> None:
        if value is not None:
            self.known.append(len(self.logs))
        self.logs.append(value)

    def drop_last(self) -> None:
        if self.logs.pop() is not None:
            self.known.pop()

    def restart(self, night: int) -> None:
        """Let the level begin with `night`."""
        self.start = night
        self.known = [known for known in self.known if known >= night]


def judged(
    series: Sequence[Sequence[Point]],
    rules: Rules | None = None,
    *,
    accepted: Collection[int] = (),
    altered: Collection[int] = (),
    ask: Ask | None = None,
) -> list[Verdict]:
    """The verdict on each of several series of the same nights.

    `ask` gives the second value of a night that seems to be a change, as a second measurement would, where `series`
    has none. `accepted`: nights whose values are normal, whatever they were before. `altered`: nights before which
    something else of the rig changed: a confirmed change needs no second night there.
    """
    rules = rules or Rules()
    watched = [_Watched(points) for points in series]
    nights = max((len(points) for points in series), default=0)
    for night in range(nights):
        found = []
        for number, own in enumerate(watched):
            change = _step(own, _point(own, night), rules, altered=night in altered)
            if ask is not None and (change is not None or _suspicion(own, rules) is not None):
                own.drop_last()
                again = Point(own.points[night].value, ask(number, night))
                change = _step(own, again, rules, altered=night in altered)
            if night in accepted and (change is not None or _suspicion(own, rules) is not None):
                own.restart(night)
            elif change is not None:
                found.append((own, change))
        kept = significant([change.p for _, change in found], rules.false_rate, len(watched))
        for (own, change), is_kept in zip(found, kept, strict=True):
            if is_kept:
                own.changes.append(change)
                own.restart(change.at)
    return [_verdict(own, rules) for own in watched]


def significant(p_values: Sequence[float], rate: float, tested: int | None = None) -> list[bool]:
    """Which of `tested` hypotheses are refuted, at this false discovery rate; p-values of the others are larger."""
    count = len(p_values) if tested is None else tested
    ranked = sorted(range(len(p_values)), key=p_values.__getitem__)
    last = max((rank for rank, at in enumerate(ranked, 1) if p_values[at] <= rate * rank / count), default=0)
    kept = set(ranked[:last])
    return [at in kept for at in range(len(p_values))]


def compared(points: Sequence[Point], level: float) -> Change | None:
    """The last night against a level given from outside, whatever its size; None: its noise is not known."""
    logs = [log(point.value) if point.value else None for point in points]
    noise, last = noise_of(logs[:-1]), _log(points[-1], log(level))
    if noise is None or last is None:
        return None
    z = (last - log(level)) / (noise * sqrt(2))
    night = len(points) - 1
    return Change(night, night, level, exp(last), noise, _p(z, min(len(logs), NOISE_NIGHTS) / 2 - 1))


def noise_of(logs: Iterable[float | None], residuals: Sequence[float] = ()) -> float | None:
    """Robust standard deviation from night to night. Steps and single bad nights leave it as it is.

    Of differences between successive nights; where they follow each other (an AR process) those are smaller than the
    noise, which is then that of `residuals`, of the nights of one level.
    """
    known = [value for value in logs if value is not None][-NOISE_NIGHTS:]
    if len(known) < LEAST_NIGHTS:
        return None
    steps = [abs(later - earlier) for earlier, later in pairwise(known)]
    noise = _MAD * median(steps) / sqrt(2)
    if len(residuals) >= LEAST_NIGHTS:
        noise = max(noise, _MAD * median(abs(residual) for residual in residuals))
    return max(noise, _LEAST_NOISE)


def _point(own: _Watched, night: int) -> Point:
    return own.points[night] if night < len(own.points) else Point(None)


def _step(own: _Watched, point: Point, rules: Rules, *, altered: bool) -> Change | None:
    """Take one more night of a series; the change that it shows, before correction."""
    own.add(_log(point, None if point.second is None else _level(islice(own.logs, own.start, None))))
    if own.logs[-1] is None or len(own.logs) - 1 <= own.start:
        return None
    known = own.known
    latest = [_value(own, night) for night in known[-max(rules.windows) :]]
    if _all_near(own, latest, rules):
        return None
    for window in _windows(own, point, rules, altered):
        if not _may_be(own, known, latest[-window:], rules):
            continue
        change = _of_window(own, known, window, rules)
        if change is not None:
            return change
    return None


def _windows(own: _Watched, point: Point, rules: Rules, altered: bool) -> Iterable[int]:
    """Sizes of windows to look at; of one night only where there is more than that night to go by."""
    if point.second is not None:
        last, level = own.logs[-1], _level(own.logs[own.start : -1])
        if last is not None and level is not None and (altered or 1 - exp(-abs(last - level)) >= rules.at_once):
            yield 1
    yield from rules.windows


def _log(point: Point, level: float | None) -> float | None:
    """Of a night's value; of two, that which is nearer to the level."""
    known = [log(value) for value in (point.value, point.second) if value is not None and value > 0]
    if point.value is None or not known:
        return None
    return known[0] if level is None else min(known, key=lambda value: abs(value - level))


def _level(logs: Iterable[float | None]) -> float | None:
    known = list(islice((value for value in logs if value is not None), ANCHOR))
    return median(known) if known else None


def _all_near(own: _Watched, latest: Sequence[float], rules: Rules) -> bool:
    """Whether no window of these nights needs to be looked at: medians lie between the least and the most of them."""
    # Only where the anchor is the same for all windows.
    if own.anchored != (own.start, ANCHOR) or len(own.known) - max(rules.windows) < ANCHOR:
        return False
    bound = rules.bound * (1 - 1e-9)
    return not (_near_bound(min(latest) - own.anchor, bound) or _near_bound(max(latest) - own.anchor, bound))


def _may_be(own: _Watched, known: Sequence[int], recent: Sequence[float], rules: Rules) -> bool:
    """Whether these nights are away from the anchor at all: on almost all nights nothing more is to be looked at."""
    count = len(known) - len(recent)
    if count < LEAST_NIGHTS:
        return False
    if own.anchored != (own.start, min(count, ANCHOR)):
        own.anchored = own.start, min(count, ANCHOR)
        own.anchor = median([_value(own, night) for night in known[: own.anchored[1]]])
    return _near_bound(median(recent) - own.anchor, rules.bound * (1 - 1e-9))


def _of_window(own: _Watched, known: Sequence[int], window: int, rules: Rules) -> Change | None:
    """The last `window` nights of the level, whose nights with a value are `known`, against its anchor."""
    if len(known) < window + LEAST_NIGHTS:
        return None
    recent, earlier = known[-window:], known[: min(ANCHOR, len(known) - window)]
    anchored = [_value(own, night) for night in earlier]
    anchor = median(anchored)
    away = [_value(own, night) - anchor for night in recent]
    size = median(away)
    if not _near_bound(size, rules.bound):
        return None
    noise = noise_of(own.logs, [value - anchor for value in anchored])
    if noise is None or not _together(away, size, noise, rules):
        return None
    if window < _nights_needed(own, anchor, noise, known[:-window], rules):
        return None
    error = noise * _OF_MEDIAN * sqrt(1 / window + 1 / len(earlier))
    if not _matters(size, error, rules.bound):
        return None
    freedom = min(len(own.logs), NOISE_NIGHTS) / 2 - 1
    at, gradual = _dated(own, anchor, size, recent[0])
    return Change(
        at=at,
        found=len(own.logs) - 1,
        before=exp(anchor),
        after=exp(anchor + size),
        noise=noise,
        p=_p(size / error, freedom),
        gradual=gradual,
    )


def _value(own: _Watched, night: int) -> float:
    value = own.logs[night]
    assert value is not None
    return value


def _together(away: Sequence[float], size: float, noise: float, rules: Rules) -> bool:
    """Whether the nights of a window are on one side, and few of them near each other: bad nights differ."""
    least = min(abs(value) for value in away)
    same_side = all(value * size > 0 for value in away)
    near = len(away) > _FEW or max(away) - min(away) <= rules.spread * noise
    return same_side and near and least >= rules.noises * noise / sqrt(len(away))


def _nights_needed(own: _Watched, anchor: float, noise: float, earlier: Sequence[int], rules: Rules) -> int:
    """Nights that must agree: three in a series of whose nights many were bad."""
    away = [abs(_value(own, night) - anchor) for night in earlier]
    bad = sum(value > rules.noises * noise or _near_bound(value, rules.bound) for value in away)
    return 3 if bad > rules.bad_nights * len(away) else 0


def _matters(size: float, error: float, bound: float) -> bool:
    """Whether a change is not certainly below the bound: one of just its size is found half the time otherwise."""
    return _near_bound(size, bound) and abs(exp(size) - 1) + error >= bound


def _near_bound(size: float, bound: float) -> bool:
    return abs(exp(size) - 1) >= _CERTAINLY_BELOW * bound


def _p(z: float, freedom: float) -> float:
    """Two-sided, of Student's distribution: noise that was estimated from few nights has heavier tails."""
    from scipy.special import stdtr

    return float(2 * stdtr(max(freedom, 1.0), -abs(z)))


def _dated(own: _Watched, anchor: float, size: float, latest: int) -> tuple[int, bool]:
    """The first night of the new level, at most `latest`, and whether it was reached by a drift."""
    import numpy as np

    known = own.known
    away = np.array([_value(own, night) - anchor for night in known])
    splits = [split for split in range(1, len(known)) if known[split] <= latest] or [len(known) - 1]
    # How far the nights before each split are from the old level; and those from it on, from the new one.
    before = np.concatenate(([0.0], np.cumsum(np.abs(away))))
    after = np.cumsum(np.abs(away - size)[::-1])[::-1]
    costs = before[splits] + after[splits]
    best, least = splits[int(costs.argmin())], float(costs.min())
    drifts = before[splits] + [_from_line(away[split:]) for split in splits]
    begin, of_drift = splits[int(drifts.argmin())], float(drifts.min())
    if len(known) - begin >= _LEAST_DRIFT and of_drift < _MUCH_BETTER * least:
        return known[begin], True
    return known[best], False


def _from_line(away: "NDArray[np.float64]") -> float:
    """How far nights are from a straight line that begins at the old level."""
    import numpy as np

    steps = np.arange(1, len(away) + 1)
    slopes = np.sort(away / steps)
    slope = (slopes[(len(away) - 1) // 2] + slopes[len(away) // 2]) / 2
    return float(np.abs(away - slope * steps).sum())


def _verdict(own: _Watched, rules: Rules) -> Verdict:
    logs = own.logs[own.start :]
    level = _level(logs)
    if level is None:
        return Verdict(tuple(own.changes), None, None, noise_of(own.logs))
    found = own.changes and own.changes[-1].found == len(own.logs) - 1
    return Verdict(tuple(own.changes), None if found else _suspicion(own, rules), exp(level), _noise(own.logs, logs))


def _noise(logs: Sequence[float | None], of_level: Sequence[float | None]) -> float | None:
    level = _level(of_level)
    known = [value for value in of_level if value is not None][:ANCHOR]
    return noise_of(logs, [] if level is None else [value - level for value in known])


def _suspicion(own: _Watched, rules: Rules) -> Suspicion | None:
    """What the last night alone shows."""
    before = own.logs[own.start : -1]
    last, level = own.logs[-1], _level(before)
    if last is None or level is None or not _near_bound(last - level, rules.bound):
        return None
    noise = _noise(own.logs[:-1], before)
    if noise is None:
        return None
    if abs(last - level) < rules.noises * noise or not _matters(last - level, noise, rules.bound):
        return None
    point = _point(own, len(own.logs) - 1)
    return Suspicion(exp(last), exp(level), noise, confirmed=point.second is not None)
