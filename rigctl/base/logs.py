"""The subjects of log lines (run, test and node), and the formats of the log.

`about` sets the subjects of a block and of the tasks started in it. `learnt` adds to them later: a run has its id only
after its nodes have been opened.
"""

import json
import logging
from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final

from rigctl.base.texts import printable

_SUBJECTS: Final = ("run", "cell", "node")
"""Fields of every line; null if the line has no such subject, or it is not known."""
_about: ContextVar[ChainMap[str, Any] | None] = ContextVar("rigctl.base.logs.about", default=None)
_PLAIN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


@contextmanager
def about(**subjects: str | int | None) -> Iterator[None]:
    """Give the log lines of this block, and of the tasks started in it, these subjects."""
    around = _about.get()
    token = _about.set(ChainMap({}) if around is None else around.new_child())
    try:
        learn(**subjects)
        yield
    finally:
        _about.reset(token)


def learn(**subjects: str | int | None) -> None:
    """Add subjects to the innermost block, also for the tasks that it has started."""
    here = _about.get()
    if here is not None:
        here.update(subjects)


def _here() -> Mapping[str, Any]:
    return _about.get() or {}


class JsonLines(logging.Formatter):
    """One JSON object per line: time, level, logger, message, run, cell, node, and the fields of the line itself."""

    def format(self, record: logging.LogRecord) -> str:
        here = _here()
        own = {name: value for name, value in vars(record).items() if name not in _PLAIN}
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: here.get(name) for name in _SUBJECTS},
            **own,
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str).encode("utf-8", "replace").decode()


class TextLines(logging.Formatter):
    """Lines for people; text of nodes and files in them is made printable."""

    def format(self, record: logging.LogRecord) -> str:
        here = _here()
        words = [f"{name} {here[name]}" for name in _SUBJECTS if here.get(name) is not None]
        subject = f" [{', '.join(words)}]" if words else ""
        traceback = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return f"{self.formatTime(record)} {record.name}{subject}: {printable(record.getMessage())}{traceback}"
