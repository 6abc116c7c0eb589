"""Options that every command has, before its name and after it: `--debug`, `-v`, and those of the log."""

import functools
import inspect
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from rigctl.base.errors import InputError, RigctlError
from rigctl.base.logs import JsonLines, TextLines


class LogForm(StrEnum):
    TEXT = "text"
    JSON = "json"


Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback with an error.")]
Verbose = Annotated[
    int,
    typer.Option("--verbose", "-v", count=True, help="Log what rigctl does; -vv: also SSH.", show_default=False),
]
LogFormat = Annotated[
    LogForm | None,
    typer.Option("--log-format", help="Log in this form, to standard error where no --log-file is given."),
]
LogFile = Annotated[
    Path | None, typer.Option("--log-file", metavar="FILE", help="Append the log to this file, not to standard error.")
]
_FORMAT: Final = "%(asctime)s %(name)s: %(message)s"


@dataclass(slots=True)
class _Log:
    """The log of this process."""

    form: LogForm | None = None
    file: Path | None = None
    handler: logging.Handler | None = None


_LOG: Final = _Log()
_log = logging.getLogger("rigctl")
_log.addHandler(logging.NullHandler())  # without a log no line of it: warnings would go to standard error


def set_up(debug: Debug = False, verbose: Verbose = 0, log_format: LogFormat = None, log_file: LogFile = None) -> None:
    """Apply the options that are given; each may stand before or after the command's name. Raises `InputError`."""
    if debug:
        os.environ["RIGCTL_DEBUG"] = "1"
    if log_format is not None or log_file is not None:
        _keep_log(log_format or _LOG.form, log_file or _LOG.file)
    if verbose:
        logging.basicConfig(format=_FORMAT, level=logging.WARNING)  # to standard error
        _log.setLevel(logging.INFO if verbose == 1 else logging.DEBUG)
        logging.getLogger("asyncssh").setLevel({1: logging.WARNING, 2: logging.INFO}.get(verbose, logging.DEBUG))


def _keep_log(form: LogForm | None, file: Path | None) -> None:
    """Log from INFO on, in place of any log before. Raises `InputError` for a file that cannot be written."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
    try:
        handler = logging.StreamHandler() if file is None else logging.FileHandler(file, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--log-file {file}: cannot be written: {error.strerror or error}") from error
    handler.setFormatter(JsonLines() if form is LogForm.JSON else TextLines())
    root.addHandler(handler)
    _LOG.form, _LOG.file, _LOG.handler = form, file, handler
    if _log.level == logging.NOTSET or _log.level > logging.INFO:
        _log.setLevel(logging.INFO)


def on_standard_error() -> bool:
    """Tell whether standard error has lines of JSON only: no progress, no message beside them."""
    return _LOG.handler is not None and _LOG.file is None and _LOG.form is LogForm.JSON


def log_error(error: RigctlError) -> None:
    """Log the error that ended the command, if a log is kept."""
    if _LOG.handler is not None:
        name = "input" if isinstance(error, InputError) else type(error).__name__.removesuffix("Error").lower()
        _log.error("%s", error, extra={"event": "failed", "error": name, "exit_code": error.exit_code})


def with_common(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return `command` with the common options behind its own."""
    return with_options(command, set_up)


def with_options(
    command: Callable[..., Any], take: Callable[..., Any], parameter: str | None = None
) -> Callable[..., Any]:
    """Return `command` with the options that are the parameters of `take`, behind its own.

    `parameter` names one of the command: the options take its place, and what `take` returns is its value.
    """
    options = inspect.signature(take).parameters

    @functools.wraps(command)
    def wrapped(*arguments: object, **named: Any) -> object:  # noqa: ANN401 — whatever its signature has
        value = take(**{name: named.pop(name) for name in options})
        return command(*arguments, **named, **({} if parameter is None else {parameter: value}))

    own = inspect.signature(command).parameters
    place = len(own) if parameter is None else list(own).index(parameter)
    kept = [option for name, option in own.items() if name != parameter]
    # typer reads these instead of the wrapper's own.
    wrapped.__signature__ = inspect.Signature([*kept[:place], *options.values(), *kept[place:]])  # type: ignore[attr-defined]
    wrapped.__annotations__ = command.__annotations__ | take.__annotations__
    return wrapped
