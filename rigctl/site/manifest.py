"""State of a site between two publishes: which runs have a page, and from which state of the run it was made."""

from dataclasses import dataclass, field
from typing import Final

from pydantic import TypeAdapter, ValidationError

from rigctl.records import Unmet
from rigctl.site.folder import Folder, is_page

_FILE: Final = "manifest.json"


@dataclass(frozen=True, slots=True)
class RunPage:
    """The page of a run. `state`: of the run, of rigctl and of the pages around it, when the page was made."""

    state: str
    scenario: str
    rig: str
    answer: str  # the sentence on top of the page
    unmet: tuple[Unmet, ...] = ()


@dataclass(slots=True)
class Manifest:
    """`compared`: the pages that compare two runs, with the ids of both and their states when the page was made."""

    runs: dict[str, RunPage] = field(default_factory=dict)
    compared: dict[str, tuple[str, str, str]] = field(default_factory=dict)


_ADAPTER: Final = TypeAdapter(Manifest)


def load(folder: Folder) -> Manifest:
    """Return the manifest of the site in `folder`; an empty one if it is missing or damaged."""
    content = folder.kept(_FILE)
    try:
        known = Manifest() if content is None else _ADAPTER.validate_json(content)
    except ValidationError:
        return Manifest()
    return known if all(map(is_page, known.compared)) else Manifest()


def save(folder: Folder, manifest: Manifest) -> None:
    folder.keep(_FILE, _ADAPTER.dump_json(manifest))
