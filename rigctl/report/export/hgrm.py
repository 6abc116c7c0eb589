"""Prints the times of a run as HdrHistogram does: a file with the percentile distribution of each test and pair.

The lines are those of outputPercentileDistribution (HdrHistogram 2.2, AbstractHistogram.java), with five of them for
each half of what is left to 100 %. Programs that plot such files read them. Times are in µs, each the middle of its
bucket, as in tables. Flows and repetitions are merged as histograms.
"""

import math
from collections.abc import Iterator
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.base.errors import InputError
from rigctl.base.texts import file_name
from rigctl.figures.messages import MessageTimes, times_of
from rigctl.settings.kinds import KINDS

_TICKS: Final = 5
"""Lines for each half of what is left to 100 %, the default of HdrHistogram."""
_BUCKETS: Final = (33, 256)
"""The buckets of rigctl.model.latency in HdrHistogram's terms: powers of two, and steps of the first one."""
_KINDS: Final = [name for name, kind in KINDS.items() if kind.timed]
_PER_US: Final = 1e3


def percentile_files(view: RunView) -> dict[str, bytes]:
    """Return the content of each file by its name, such as `test-2-client-near.hgrm`. Raise `InputError` if none."""
    files: dict[str, bytes] = {}
    width = len(str(max(cell.number for cell in view.plan.cells)))
    for result in view.all_messages:
        times = times_of(result.group)
        if times is not None:
            ends = "-".join(map(file_name, result.stream.ends))
            name = f"test-{result.cell.number:0{width}}-{ends}"
            same = sum(known.startswith(f"{name}.") for known in files)  # a-b to c, and a to b-c
            files[f"{name}{f'.{same + 1}' if same else ''}.hgrm"] = percentile_text(times).encode()
    if files:
        return files
    run, known = view.info.run, ", ".join(_KINDS)
    if any(cell.test in _KINDS for cell in view.plan.cells):
        raise InputError(f"export: run {run} has no measured times. `rigctl show` tells why")
    raise InputError(f"export: run {run} has no histograms of times. Tests of the kinds {known} have them")


def percentile_text(times: MessageTimes) -> str:
    """Return the percentile distribution of times. Without an answer to all requests it ends before 100 %."""
    lines = [f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}", ""]
    for percent, so_far, time_ns in _distribution(times):
        rest = "" if percent == 100 else f" {1 / (1 - percent / 100):14.2f}"
        lines.append(f"{time_ns / _PER_US:12.3f} {percent / 100:2.12f} {so_far:10d}{rest}")
    mean_us, deviation_us = _mean_and_deviation_us(times)
    most_us = (times.most_ns or times.time_ns(times.buckets[-1][0])) / _PER_US
    lines.append(f"#[Mean    = {mean_us:12.3f}, StdDeviation   = {deviation_us:12.3f}]")
    lines.append(f"#[Max     = {most_us:12.3f}, Total count    = {times.count:12d}]")
    lines.append(f"#[Buckets = {_BUCKETS[0]:12d}, SubBuckets     = {_BUCKETS[1]:12d}]")
    if times.unanswered:
        lines.append(f"#[Unanswered = {times.unanswered}, counted as longer than all others]")
    return "\n".join((*lines, ""))


def _distribution(times: MessageTimes) -> Iterator[tuple[float, int, float]]:
    """Yield the percentile, the number of times up to it, and its time in ns; last 100 % if all were answered."""
    total, so_far, percent = times.count, 0, 0.0
    for bucket, count in times.buckets:
        so_far += count
        while 100 * so_far / total >= percent:
            yield percent, so_far, times.time_ns(bucket)
            halves = math.floor(math.log2(100 / (100 - percent)))
            percent += 100 / (_TICKS * 2 ** (halves + 1))
            if so_far == total:
                yield 100.0, total, float(times.most_ns or times.time_ns(bucket))
                return


def _mean_and_deviation_us(times: MessageTimes) -> tuple[float, float]:
    known = [(times.time_ns(bucket) / _PER_US, count) for bucket, count in times.buckets]
    mean_us = sum(time_us * count for time_us, count in known) / times.answered
    return mean_us, math.sqrt(sum(count * (time_us - mean_us) ** 2 for time_us, count in known) / times.answered)
