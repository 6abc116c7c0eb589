"""Other change-point detectors, run by bench_regressions in a Python that has them: first nights of levels of series.

python regression_peers.py NAME <SERIES.json: a list of lists of values; prints as many lists of indices.
"""

import importlib
import json
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

BOUND: Final = 0.015


def otava(values: Sequence[float], least: float) -> list[int]:
    """Apache Otava with its own window and p-value of 0.001, as its users have it."""
    series: Any = importlib.import_module("otava.series")
    count = len(values)
    data = series.Series(
        "test", None, list(range(count)), {"goodput": series.Metric(1, 1.0)}, {"goodput": list(values)}, {}
    )
    options = series.AnalysisOptions()
    options.min_magnitude = least
    points = data.analyze(options).change_points["goodput"]
    return [int(point.index) for point in points]


def ruptures(values: Sequence[float], least: float) -> list[int]:
    """PELT with the cost of normal noise of unknown mean, penalty 3 ln n, noise by the median absolute deviation."""
    rpt: Any = importlib.import_module("ruptures")
    numpy: Any = importlib.import_module("numpy")
    steps = [abs(later - earlier) for earlier, later in pairwise(values)]
    noise = max(1.4826 * statistics.median(steps) / math.sqrt(2), 1e-9)
    found = rpt.Pelt(model="l2", min_size=2, jump=1).fit(numpy.array(values) / noise)
    ends = found.predict(pen=3 * math.log(len(values)))
    begins = [0, *ends[:-1]]
    levels = [statistics.fmean(values[begin:end]) for begin, end in zip(begins, ends, strict=True)]
    pairs = zip(begins[1:], levels, levels[1:], strict=False)
    return [begin for begin, before, after in pairs if abs(after / before - 1) > least]


DETECTORS: Final[dict[str, Callable[[Sequence[float]], list[int]]]] = {
    "otava": lambda values: otava(values, 0.0),
    "otava, bound": lambda values: otava(values, BOUND),
    "ruptures": lambda values: ruptures(values, 0.0),
    "ruptures, bound": lambda values: ruptures(values, BOUND),
}

if __name__ == "__main__":
    detect = DETECTORS[sys.argv[1]]
    print(json.dumps([detect(values) for values in json.load(sys.stdin)]))
