"""What one publish knows while it is at work."""

from dataclasses import dataclass, field

from rigctl.analysis.history import Values
from rigctl.records import RunInfo
from rigctl.site import values
from rigctl.site.folder import Folder
from rigctl.site.manifest import Manifest
from rigctl.site.run_pages import Damaged, Page, Shown
from rigctl.store import Store


@dataclass(slots=True)
class Work:
    """`infos`: runs as far as they were read; `fresh`: values of the runs whose pages were made now; `shown`: all of
    those that were made in this process.
    """

    store: Store
    folder: Folder
    manifest: Manifest
    maker: str
    now: float  # nights after it are those of a clock that was wrong
    infos: dict[str, RunInfo] = field(default_factory=dict)
    fresh: dict[str, Values] = field(default_factory=dict)
    shown: dict[str, Shown] = field(default_factory=dict)
    damaged: dict[str, str] = field(default_factory=dict)

    def take(self, page: Page | Damaged) -> None:
        """Note what was made of a run, or why it cannot be read."""
        if isinstance(page, Damaged):
            self.damaged[page.run] = page.message
            return
        self.manifest.runs[page.made.run] = page.made
        self.fresh[page.made.run] = values.from_plain(page.values)
        if page.shown is not None:
            self.shown[page.made.run] = page.shown
