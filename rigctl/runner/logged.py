"""Progress that is also logged, so that the log tells what the screen does, line by line with run, test and node."""

import logging

from rigctl.base.logs import learnt
from rigctl.measure.orders import Channel
from rigctl.records import Cell, Repetition, Status
from rigctl.runner.progress import Progress, granted_otherwise, settings_text

_log = logging.getLogger("rigctl.run")


class Logged:
    """`progress`, and a log line for each of its events."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def began(self, cell: Cell, repetition: int, attempt: int) -> None:
        learnt(cell=cell.number)
        numbers = {"repetition": repetition, "attempt": attempt}
        _log.info("test begins: %s", settings_text(cell, named=True), extra={"event": "test begins", **numbers})
        self._progress.began(cell, repetition, attempt)

    def received(self, channel: Channel, clock_ns: int, total_bytes: int) -> None:
        self._progress.received(channel, clock_ns, total_bytes)

    def ended(self, cell: Cell, result: Repetition) -> None:
        numbers = {"repetition": result.repetition, "attempt": result.attempt, "status": str(result.status)}
        level = logging.INFO if result.status is Status.OK and result.reason is None else logging.WARNING
        why = f": {result.reason}" if result.reason else ""
        _log.log(level, "test ended: %s%s", result.status, why, extra={"event": "test ended", **numbers})
        for line in granted_otherwise(cell, result):
            _log.info("%s", line)
        learnt(cell=None)
        self._progress.ended(cell, result)

    def said(self, line: str) -> None:
        _log.info("%s", line)
        self._progress.said(line)
