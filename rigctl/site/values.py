"""The values of nights, kept beside the pages: a night is read from the store once, and drawn every morning."""

from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final

from pydantic_core import from_json, to_json

from rigctl.analysis.nights.figures import FigureKey, Metric
from rigctl.records import Direction, Pair, Stream
from rigctl.site.folder import Folder
from rigctl.site.names import Course

_FILE: Final = "values-{}.json"


@dataclass(slots=True)
class Kept:
    """Of the runs of a course, their values; and what each was made from."""

    runs: dict[str, dict[FigureKey, float | None]] = field(default_factory=dict)


def load(folder: Folder, course: Course) -> Kept:
    """What is kept of `course`; of a file that is missing or damaged, nothing."""
    said = folder.kept(_FILE.format(course.name))
    if said is None:
        return Kept()
    try:
        found = from_json(said)
        keys = [_key(parts) for parts in found["keys"]]
        return Kept({run: {keys[at]: _number(value) for at, value in own} for run, own in found["runs"].items()})
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError):
        return Kept()


def save(folder: Folder, course: Course, kept: Kept) -> None:
    keys = {key: at for at, key in enumerate(dict.fromkeys(key for own in kept.runs.values() for key in own))}
    runs = {run: [(keys[key], value) for key, value in own.items()] for run, own in kept.runs.items()}
    said = {"keys": [_parts(key) for key in keys], "runs": runs}
    folder.keep(_FILE.format(course.name), to_json(said, inf_nan_mode="constants"))


def _parts(key: FigureKey) -> list[Any]:
    stream = key.stream
    ends = None if stream is None else [stream.pair.source, stream.pair.destination, str(stream.direction)]
    return [key.test, ends, key.metric.name, key.metric.higher_is_better]


def _key(parts: list[Any]) -> FigureKey:
    test, ends, name, higher = parts
    stream = None if ends is None else Stream(Pair(str(ends[0]), str(ends[1])), Direction(ends[2]))
    return FigureKey(str(test), stream, Metric(str(name), bool(higher)))


def _number(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, int | float) and isfinite(value):
        return float(value)
    raise TypeError(value)
