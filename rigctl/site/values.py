"""The values of nights, kept beside the pages: a night is read from the store once, and drawn every morning."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from pydantic_core import from_json, to_json

from rigctl.analysis.figures import FigureKey, Metric
from rigctl.records import Direction, Pair, Stream
from rigctl.site.folder import Folder
from rigctl.site.names import Course

Plain: TypeAlias = list[tuple[list[Any], float | None]]
"""The values of a run as JSON holds them: keys in parts."""
_FOLDER: Final = "values"


@dataclass(slots=True)
class Kept:
    """Of the runs of a course, their values; and what each was made from."""

    runs: dict[str, dict[FigureKey, float | None]] = field(default_factory=dict)


def to_plain(values: Mapping[FigureKey, float | None]) -> Plain:
    return [(_parts(key), value) for key, value in values.items()]


def from_plain(plain: Iterable[tuple[list[Any], float | None]]) -> dict[FigureKey, float | None]:
    return {_key(parts): value for parts, value in plain}


def load(folder: Folder, course: Course) -> Kept:
    """What is kept of `course`; of a file that is missing or damaged, nothing."""
    said = folder.kept(f"{_FOLDER}/{course.name}.json")
    if said is None:
        return Kept()
    try:
        found = from_json(said)
        keys = [_key(parts) for parts in found["keys"]]
        return Kept({run: {keys[at]: _number(value) for at, value in own} for run, own in found["runs"].items()})
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return Kept()


def save(folder: Folder, course: Course, kept: Kept) -> None:
    keys = {key: at for at, key in enumerate(dict.fromkeys(key for own in kept.runs.values() for key in own))}
    runs = {run: [(keys[key], value) for key, value in own.items()] for run, own in kept.runs.items()}
    said = {"keys": [_parts(key) for key in keys], "runs": runs}
    (folder.own / _FOLDER).mkdir(exist_ok=True)
    folder.keep(f"{_FOLDER}/{course.name}.json", to_json(said, inf_nan_mode="constants"))


def _parts(key: FigureKey) -> list[Any]:
    stream = key.stream
    ends = None if stream is None else [stream.pair.source, stream.pair.destination, str(stream.direction)]
    return [key.test, ends, key.metric.name, key.metric.higher_is_better]


def _key(parts: list[Any]) -> FigureKey:
    test, ends, name, higher = parts
    stream = None if ends is None else Stream(Pair(str(ends[0]), str(ends[1])), Direction(ends[2]))
    return FigureKey(str(test), stream, Metric(str(name), bool(higher)))


def _number(value: object) -> float | None:
    if value is None or isinstance(value, int | float):
        return value
    raise TypeError(value)
