"""What one publish knows while it is at work."""

from dataclasses import dataclass, field

from rigctl.analysis.history import Values
from rigctl.records import RunInfo
from rigctl.site.folder import Folder
from rigctl.site.manifest import Manifest
from rigctl.store import Store


@dataclass(slots=True)
class Work:
    """`infos`: runs as far as they were read; `fresh`: values of the runs whose pages were made now."""

    store: Store
    folder: Folder
    manifest: Manifest
    maker: str
    infos: dict[str, RunInfo] = field(default_factory=dict)
    fresh: dict[str, Values] = field(default_factory=dict)
    damaged: dict[str, str] = field(default_factory=dict)
