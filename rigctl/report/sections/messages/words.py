"""What a run of messages says: its answer, sizes that vary, datagrams that did not come back."""

from collections.abc import Iterator, Sequence
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.messages import MessageResult
from rigctl.base.units import format_bytes
from rigctl.findings import Finding, Severity, Weight, tests
from rigctl.records import RunInfo
from rigctl.report.sections.messages.lines import lines
from rigctl.report.words.above_ceiling import message_excess_findings
from rigctl.report.words.text import listed, percent_text, plural, time_text

NOISY: Final = 0.05
"""A variation above this share of the mean is reported."""
CONVERGED: Final = 0.99
"""From the smallest size on that achieves this share of the highest throughput, it has converged."""
MOST_NAMED: Final = 3


def message_findings(view: RunView) -> Iterator[Finding]:
    """The answer first."""
    counted = [result for result in view.messages if result.elapsed_s]
    if not counted:
        return
    trips = counted[0].cell.kind.round_trips
    if not view.meshes:
        again = [] if view.again is None else [result for result in view.again.messages if result.elapsed_s]
        yield from _trip_answer(counted, again) if trips else _blast_answer(counted)
    if not trips:
        yield from message_excess_findings(view.info, counted)
    yield from _noisy(counted, again=view.plan.retest is not None)
    yield from _unanswered(counted)


def _trip_answer(counted: Sequence[MessageResult], again: Sequence[MessageResult]) -> Iterator[Finding]:
    """The line of the shortest round trips, at its smallest and its largest size; as measured again, if it was."""
    drawn = lines(counted)
    best = min(drawn, key=lambda line: line.results[0].rtt_mean_ns or float("inf"))
    small, large = best.results[0], best.results[-1]
    which = f" ({best.name})" if best.name else ""
    text = f"A round trip of {size_text(small)} takes {_mean_text(small, again, f' on average{which}')}"
    if large.size > small.size:
        text += f"; one of {size_text(large)} takes {_mean_text(large, again)}"
    numbers = {"app_rtt_mean_us": small.rtt_mean_ns and small.rtt_mean_ns / 1e3, "app_rtt_p99_us": small.rtt_us(99)}
    if later := _again(small, again):
        numbers["app_rtt_mean_again_us"] = later.rtt_mean_ns and later.rtt_mean_ns / 1e3
    yield Finding(f"{text}.", Weight.ANSWER, subject=tests([small.cell.number]), numbers=numbers)
    for line in drawn:
        if line is not best:
            first = line.results[0]
            text = f"With {line.name}, a round trip of {size_text(first)} takes {_us_text(first.rtt_mean_ns)}."
            yield Finding(text, Weight.COMPARISON, subject=tests([first.cell.number]))


def _again(result: MessageResult, again: Sequence[MessageResult]) -> MessageResult | None:
    """Return the same test and pair as measured again; None if it was not."""
    return next((one for one in again if (one.cell, one.stream) == (result.cell, result.stream)), None)


def _mean_text(result: MessageResult, again: Sequence[MessageResult], what: str = "") -> str:
    """`63.7 µs on average (…)`; of what was measured again its mean first, and beside it the mean it replaces."""
    later = _again(result, again)
    if later is None:
        return f"{_us_text(result.rtt_mean_ns)}{what}{_spread(result)}"
    first = f"{_us_text(result.rtt_mean_ns)} in the first {len(result.elapsed_s)}"
    over = f"over {plural(len(later.elapsed_s), 'further repetition')}, {first}"
    return f"{_us_text(later.rtt_mean_ns)}{what} {over}{_spread(later)}"


def _spread(result: MessageResult) -> str:
    half, most = result.rtt_us(50), result.rtt_us(99)
    if half is None or most is None:
        return ""
    return f" (median {time_text(half)}, 99 % within {time_text(most)})"


def _blast_answer(counted: Sequence[MessageResult]) -> Iterator[Finding]:
    best = max(counted, key=lambda result: result.bytes_per_s or 0.0)
    top = best.bytes_per_s or 0.0
    share = f", {percent_text(best.efficiency)} % of the ceiling" if best.efficiency is not None else ""
    sizes = sorted({result.size for result in counted})
    highest = {size: max(result.bytes_per_s or 0.0 for result in counted if result.size == size) for size in sizes}
    stays = [all(highest[other] >= CONVERGED * top for other in sizes[number:]) for number in range(len(sizes))]
    from_on = next((size for size, kept in zip(sizes, stays, strict=True) if kept), None)
    text = f"The highest throughput is {top:,.0f} byte/s, with messages of {size_text(best)}{share}"
    if from_on is not None and from_on > sizes[0]:
        text += f"; from {format_bytes(from_on)} on it stays within {100 * (1 - CONVERGED):.0f} % of that"
    numbers = {"throughput_bytes_per_s": top, "efficiency": best.efficiency}
    yield Finding(f"{text}.", Weight.ANSWER, subject=tests([best.cell.number]), numbers=numbers)


def _noisy(counted: Sequence[MessageResult], *, again: bool) -> Iterator[Finding]:
    """Sizes whose repetitions differ: how many, and the worst of them."""
    noisy = [result for result in counted if result.mean_s and (result.variation_s or 0.0) > NOISY * result.mean_s]
    if not noisy or again:
        return
    worst = sorted(noisy, key=_share, reverse=True)[:MOST_NAMED]
    named = listed([f"test {result.cell.number} ({100 * _share(result):.0f} %)" for result in worst])
    which = named if len(noisy) <= MOST_NAMED else f"{len(noisy)} tests, most in {named}"
    text = f"Repetitions vary by more than {100 * NOISY:.0f} % of their mean in {which}."
    remedy = "Measure them again with `retest: {when: variation > 5%}`."
    subject = tests(result.cell.number for result in noisy)
    yield Finding(text, Weight.SUSPECT, Severity.WARNING, subject, remedy=remedy)


def _share(result: MessageResult) -> float:
    return (result.variation_s or 0.0) / (result.mean_s or 1.0)


def _unanswered(counted: Sequence[MessageResult]) -> Iterator[Finding]:
    for result in counted:
        if result.unanswered:
            text = (
                f"Test {result.cell.number}: {plural(result.unanswered, 'datagram')} of {size_text(result)} did not "
                "come back within a second; the round trips are of those that did."
            )
            numbers = {"unanswered": result.unanswered}
            yield Finding(text, Weight.LOSS, Severity.WARNING, tests([result.cell.number]), numbers)


def shaping_text(info: RunInfo, trips: bool) -> str:
    """What a virtual link can't show: a wire's time for a short message or a short test."""
    if info.plan.virtual != "namespaces":
        return ""
    buckets = "The virtual links are shaped by token buckets, which pass what is shorter than the bucket at once: "
    if trips:
        return f"{buckets}on a wire of that rate a short message takes the time of its frames besides."
    return f"{buckets}short tests may exceed the ceiling."


def size_text(result: MessageResult) -> str:
    """`1 byte`, `100 bytes`, `64K`."""
    if result.size % 1024 == 0:
        return format_bytes(result.size)
    return f"{result.size} byte" if result.size == 1 else f"{result.size} bytes"


def _us_text(time_ns: float | None) -> str:
    return time_text(None if time_ns is None else time_ns / 1000)
