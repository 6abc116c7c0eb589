"""What is said of latency under load: the largest rise, with the queue that it stands for, and probes that got lost."""

from collections.abc import Iterator, Sequence
from typing import Final

from rigctl.findings import Finding, Severity, Subject, Weight, tests
from rigctl.records import Direction
from rigctl.report.sections.latency.table import Result
from rigctl.report.words.text import numbers_text, plural, rate_text, time_text

GROWN: Final = 2.0
"""Under load a round trip has grown from this multiple of the idle one on …"""
LEAST_RISE_US: Final = 300.0
"""… where it is also longer by this: less is what busy processors add."""
MUCH_LOST_PCT: Final = 1.0


def findings(found: Sequence[Result]) -> Iterator[Finding]:
    known = [row for row in found if row.latency.rise_us is not None]
    if known:
        yield _rise(max(known, key=lambda row: row.latency.rise_us or 0.0), len(known))
    yield from _silent([row for row in found if row.latency.lost_pct == 100])
    lossy = [row for row in known if MUCH_LOST_PCT <= (row.latency.lost_pct or 0.0) < 100]
    if lossy:
        worst = max(lossy, key=lambda row: row.latency.lost_pct or 0.0)
        text = f"Under load {worst.latency.lost_pct:.2g} % of the probes of {worst.stream} got lost {_in(worst)}"
        text += f", the most of {plural(len(lossy), 'pair')} with losses." if len(lossy) > 1 else "."
        yield Finding(text, Weight.LOSS, Severity.NOTE, _subject(worst), {"latency_lost_pct": worst.latency.lost_pct})


def _rise(worst: Result, count: int) -> Finding:
    latency = worst.latency
    idle_us, loaded_us = latency.idle_p50_us or 0.0, latency.loaded_p50_us or 0.0
    held_bytes = queue_bytes(worst)
    measured = {
        "latency_idle_p50_us": latency.idle_p50_us,
        "latency_loaded_p50_us": latency.loaded_p50_us,
        "latency_rise_us": latency.rise_us,
        "latency_rpm": latency.rpm,
        "queue_bytes": held_bytes,
    }
    if not grown(worst):
        most = f", the largest rise of {count} rows" if count > 1 else ""
        text = f"Under load the round trip stays short: {time_text(loaded_us)} of {worst.stream} {_in(worst)}"
        text += f", {time_text(idle_us)} when idle (p50){most}."
        return Finding(text, Weight.DETAIL, Severity.OK, _subject(worst), measured)
    text = (
        f"Under load the round trip of {worst.stream} grows from {time_text(idle_us)} to {time_text(loaded_us)} (p50) "
    )
    text += _in(worst)
    if held_bytes is not None and worst.stream.goodput_mbps is not None:
        goodput = rate_text(worst.stream.goodput_mbps.mean, worst.stream.ceiling_mbps)
        text += f": a queue of about {float(f'{held_bytes / 1024:.2g}'):,.0f} KB at {goodput} Mbit/s"
    text += f"; the largest rise of {count} rows." if count > 1 else "."
    remedy = "A smaller window, a lower rate or a queue that drops earlier (fq_codel) shortens it."
    return Finding(text, Weight.COMPARISON, Severity.NOTE, _subject(worst), measured, remedy)


def grown(row: Result) -> bool:
    """Whether it is longer under load by more than busy processors add."""
    idle_us, rise_us = row.latency.idle_p50_us, row.latency.rise_us
    if idle_us is None or rise_us is None:
        return False
    return rise_us >= LEAST_RISE_US and idle_us + rise_us >= GROWN * idle_us


def queue_bytes(row: Result) -> float | None:
    """The rise at the goodput; unknown where other streams may fill the same queue, or there is one each way."""
    rise_us, goodput = row.latency.rise_us, row.stream.goodput_mbps
    if rise_us is None or goodput is None or not grown(row):
        return None
    if row.cell.shared or row.cell.cell.direction is Direction.BOTH:
        return None
    return rise_us * goodput.mean / 8


def _silent(found: Sequence[Result]) -> Iterator[Finding]:
    if not found:
        return
    names = sorted({row.cell.cell.number for row in found})
    text = f"No probe of {found[0].stream} was answered in {numbers_text(names)}: latency is unknown."
    yield Finding(text, Weight.SUSPECT, Severity.WARNING, tests(names), {}, "Check whether a firewall drops UDP.")


def _in(row: Result) -> str:
    return f"in test {row.cell.cell.number}"


def _subject(row: Result) -> Subject:
    return tests([row.cell.cell.number])
