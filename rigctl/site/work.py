"""What one publish knows while it is at work."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rigctl.analysis.nights.history import Values
from rigctl.base.errors import InputError
from rigctl.records import RunInfo
from rigctl.site.folder import Folder
from rigctl.site.manifest import Manifest
from rigctl.site.run_pages import Shown
from rigctl.store import Store
from rigctl.store.errors import UNREADABLE, of_run

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Work:
    """`infos`: runs as far as they were read; `fresh`: values of the runs whose pages were made now; `shown`: the
    latest of those runs, of one course.
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

    @contextmanager
    def noting(self, run: str) -> Iterator[None]:
        """Note a run that cannot be read, judged or drawn as damaged: it stops nothing else."""
        try:
            yield
        except (InputError, *UNREADABLE) as error:
            _log.debug("run %s", run, exc_info=error)
            self.damaged[run] = of_run(self.store.place, run, error)
