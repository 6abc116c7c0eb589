"""The limit of a stream or a test: the verdict of the first rule of `rules.RULES` that holds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rigctl.model.limits.evidence import NAMES, Evidence, values_of
from rigctl.model.limits.rules import RULES, Known


@dataclass(frozen=True, slots=True)
class Verdict:
    """A limit, the rule that named it and the numbers it looked at."""

    limit: str = "unknown"
    rule: str = "no rule applies"
    cause: str | None = None
    numbers: Mapping[str, float | str | bool | None] = field(default_factory=dict)

    @property
    def detail(self) -> str:
        """Return the text of a column: `policer: lost_share 0.026, variation 0.012`."""
        values = ", ".join(f"{name} {_number(value)}" for name, value in self.numbers.items() if value is not None)
        return f"{self.rule}: {values}" if values else self.rule


def _number(value: float | str | bool) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def judged(seen: Evidence) -> Verdict:
    """Return the verdict of the first rule that holds."""
    values = dict(zip(NAMES, values_of(seen), strict=True))
    known, unknown = Known(**values), {name for name, value in values.items() if value is None}
    for rule in RULES:
        if unknown.isdisjoint(rule.needs) and rule.holds(known):
            numbers = {name: values[name] for name in rule.needs}
            return Verdict(rule.limit, rule.name, rule.cause, {**numbers, "goodput_mbps": seen.goodput_mbps})
    return Verdict(numbers={"goodput_mbps": seen.goodput_mbps, "efficiency": seen.efficiency})


def together(verdicts: Iterable[tuple[Verdict, float]], whole: Verdict | None = None) -> Verdict:
    """Return the verdict of a test from those of its streams, each with the Mbit/s it is below its ceiling.

    If the streams differ, that is `whole`, the verdict on their sum if they fill their links together; without it,
    the verdict on the stream that is furthest below its ceiling.
    """
    given = list(verdicts)
    limits = {verdict.limit for verdict, _ in given}
    if whole is not None and len(limits) > 1:
        return next((verdict for verdict, _ in given if verdict.limit == "shared-link"), whole)
    return max(given, key=lambda pair: pair[1])[0] if given else Verdict()
