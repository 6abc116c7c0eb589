"""Publish the state of this process's run in a thread: the run itself never waits for a file."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rigctl.display.folder import own_folder, tidy, write
from rigctl.display.state import State

INTERVAL_S: Final = 0.5
SIGN_OF_LIFE_S: Final = 2.0
_log = logging.getLogger(__name__)


class Publisher:
    """Writes the snapshot soon after `changed`, and now and then as a sign of life."""

    def __init__(self, folder: Path, snapshot: Callable[[], State]) -> None:
        self._folder, self._snapshot = folder, snapshot
        self._changed, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="rigctl-display", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def changed(self) -> None:
        self._changed.set()

    def stop(self) -> None:
        """Write the last state."""
        self._over.set()
        self._changed.set()
        self._thread.join(SIGN_OF_LIFE_S)  # a file system that hangs holds nobody up

    def _work(self) -> None:
        try:
            tidy(self._folder)
            while not self._over.is_set():
                self._changed.clear()
                write(self._folder, self._snapshot())
                self._over.wait(INTERVAL_S)
                self._changed.wait(SIGN_OF_LIFE_S - INTERVAL_S)
            write(self._folder, self._snapshot())
        except OSError as error:
            _log.info("rigctl display cannot show this run: %s", error)


@contextmanager
def publishing(snapshot: Callable[[], State]) -> Iterator[Callable[[], None]]:
    """Publish snapshots during the block. Yield the function to call when the state has changed."""
    folder = own_folder()
    if folder is None:
        _log.info("rigctl display cannot show this run: no folder for its state")
        yield lambda: None
        return
    publisher = Publisher(folder, snapshot)
    publisher.start()
    try:
        yield publisher.changed
    finally:
        with contextlib.suppress(RuntimeError):
            publisher.stop()
