"""Where the log goes: lines of text or JSON, to a file or standard error, by `--log-format` and `--log-file`."""

import logging
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from rigctl.base.errors import InputError, RigctlError
from rigctl.base.logs import JsonLines, TextLines


class Form(StrEnum):
    TEXT = "text"
    JSON = "json"


@dataclass(slots=True)
class _Log:
    form: Form | None = None
    file: Path | None = None
    handler: logging.Handler | None = None


_LOG: Final = _Log()
_log = logging.getLogger("rigctl")
_log.addHandler(logging.NullHandler())  # without a log no line of it: warnings would go to standard error


def keep_log(form: Form | None, file: Path | None) -> None:
    """Log as told, from INFO on. What is not given stays as it is. Raises `InputError` for a file that can't be had."""
    if form is None and file is None:
        return
    _LOG.form, _LOG.file = form or _LOG.form, file or _LOG.file
    root = logging.getLogger()
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
    try:
        made = logging.StreamHandler() if _LOG.file is None else logging.FileHandler(_LOG.file, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--log-file {_LOG.file}: cannot be written: {error.strerror or error}") from error
    made.setFormatter(JsonLines() if _LOG.form is Form.JSON else TextLines())
    root.addHandler(made)
    _LOG.handler = made
    if _log.level == logging.NOTSET or _log.level > logging.INFO:
        _log.setLevel(logging.INFO)


def on_standard_error() -> bool:
    """Whether all that goes to standard error is to be lines of JSON: no progress, no message beside it."""
    return _LOG.handler is not None and _LOG.file is None and _LOG.form is Form.JSON


def log_error(error: RigctlError) -> None:
    """A command's last words in the log, where one is kept."""
    if _LOG.handler is not None:
        name = "input" if isinstance(error, InputError) else type(error).__name__.removesuffix("Error").lower()
        _log.error("%s", error, extra={"event": "failed", "error": name, "exit_code": error.exit_code})
