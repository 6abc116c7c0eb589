"""The subjects of log lines (run, test and node), and the formats of the log.

`about` sets the subjects for a block and for the tasks that the block starts. `learn` adds subjects later, as a run
gets its id only after its nodes are connected.
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
"""Names of the subjects in every log line; a subject is null if the line has none, or if it is unknown."""
_about: ContextVar[ChainMap[str, Any] | None] = ContextVar("rigctl.base.logs.about", default=None)
_PLAIN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


@contextmanager
def about(**subjects: str | int | None) -> Iterator[None]:
    """Set the subjects of log lines in this block and in tasks that the block starts; yield nothing."""
    around = _about.get()
    token = _about.set(ChainMap({}) if around is None else around.new_child())
    try:
        learn(**subjects)
        yield
    finally:
        _about.reset(token)


def learn(**subjects: str | int | None) -> None:
    """Add subjects to the innermost block of `about`, and to the tasks that the block has started."""
    here = _about.get()
    if here is not None:
        here.update(subjects)


class JsonLines(logging.Formatter):
    """Formats log lines as JSON objects: time, level, logger, message, run, cell, node, and extra fields."""

    def format(self, record: logging.LogRecord) -> str:
        here: Mapping[str, Any] = _about.get() or {}
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
    """Formats log lines for people, with unprintable characters replaced."""

    def format(self, record: logging.LogRecord) -> str:
        here: Mapping[str, Any] = _about.get() or {}
        words = [f"{name} {here[name]}" for name in _SUBJECTS if here.get(name) is not None]
        subject = f" [{', '.join(words)}]" if words else ""
        traceback = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return f"{self.formatTime(record)} {record.name}{subject}: {printable(record.getMessage())}{traceback}"
