"""What a site was made from: of each run and each other page, so that only what changed is made anew."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from rigctl.base.resources import templates
from rigctl.base.units import is_instant
from rigctl.base.version import __version__
from rigctl.site.course import Summary
from rigctl.site.folder import Folder, is_page
from rigctl.site.made import MadeRun

_FILE: Final = "manifest.json"
_ROOMS: Final = ("analysis", "model", "report", "site")
"""The rooms whose code decides what is on a page."""


@dataclass(slots=True)
class Manifest:
    """`compared`: of each page that compares two runs, these and a digest of what it was made from."""

    runs: dict[str, MadeRun] = field(default_factory=dict)
    courses: dict[str, Summary] = field(default_factory=dict)  # by the course's name
    compared: dict[str, tuple[str, str, str]] = field(default_factory=dict)


_ADAPTER: Final = TypeAdapter(Manifest)


def load(folder: Folder) -> Manifest:
    """What is known of the site in `folder`; of one whose manifest is missing or damaged, nothing."""
    said = folder.kept(_FILE)
    try:
        known = Manifest() if said is None else _ADAPTER.validate_json(said)
    except ValidationError:
        return Manifest()
    return known if all(map(is_page, known.compared)) and all(map(is_instant, _instants(known))) else Manifest()


def _instants(manifest: Manifest) -> Iterator[float]:
    for run in manifest.runs.values():
        yield from (run.started_at, run.started_at if run.ended_at is None else run.ended_at)
    for course in manifest.courses.values():
        nights = (*course.strip, course.latest) if course.latest is not None else course.strip
        yield from (slot.at for slot in nights)
        yield from (entry.at for entry in course.entries)


def save(folder: Folder, manifest: Manifest) -> None:
    folder.keep(_FILE, _ADAPTER.dump_json(manifest))


def digest(*parts: object) -> str:
    """Of anything whose `repr` tells all of it."""
    return sha256(repr(parts).encode("utf-8", "replace")).hexdigest()[:24]


def maker() -> str:
    """What makes the pages: this version of rigctl, with its templates and code."""
    own = sha256(__version__.encode())
    code = Path(__file__).parents[1]
    files = [*templates().rglob("*"), *(path for room in _ROOMS for path in (code / room).rglob("*.py"))]
    for path in sorted(files):
        if path.is_file():
            own.update(path.read_bytes())
    return own.hexdigest()[:16]
