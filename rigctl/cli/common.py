"""Options that every command has, before its name and after it: `--debug`, `-v`, and those of the log."""

import functools
import inspect
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from rigctl.cli.log import Form, keep_log

Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback with an error.")]
Verbose = Annotated[
    int,
    typer.Option("--verbose", "-v", count=True, help="Log what rigctl does; -vv: also SSH.", show_default=False),
]
LogFormat = Annotated[
    Form | None,
    typer.Option("--log-format", help="Log in this form, to standard error where no --log-file is given."),
]
LogFile = Annotated[
    Path | None, typer.Option("--log-file", metavar="FILE", help="Append the log to this file, not to standard error.")
]
_OPTIONS: Final[dict[str, tuple[Any, Any]]] = {
    "debug": (Debug, False),
    "verbose": (Verbose, 0),
    "log_format": (LogFormat, None),
    "log_file": (LogFile, None),
}
_FORMAT: Final = "%(asctime)s %(name)s: %(message)s"


def set_up(*, debug: bool, verbose: int, log_format: Form | None = None, log_file: Path | None = None) -> None:
    """Take effect of what was given; what is not given changes nothing, as it may stand in the other place."""
    if debug:
        os.environ["RIGCTL_DEBUG"] = "1"
    keep_log(log_format, log_file)
    if verbose:
        logging.basicConfig(format=_FORMAT, level=logging.WARNING)  # to standard error
        logging.getLogger("rigctl").setLevel(logging.INFO if verbose == 1 else logging.DEBUG)
        logging.getLogger("asyncssh").setLevel({1: logging.WARNING, 2: logging.INFO}.get(verbose, logging.DEBUG))


def with_common(command: Callable[..., Any]) -> Callable[..., Any]:
    """`command` with the common options behind its own."""

    @functools.wraps(command)
    def wrapped(
        *arguments: object,
        debug: bool,
        verbose: int,
        log_format: Form | None,
        log_file: Path | None,
        **named: object,
    ) -> object:
        set_up(debug=debug, verbose=verbose, log_format=log_format, log_file=log_file)
        return command(*arguments, **named)

    signature = inspect.signature(command)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in _OPTIONS.items()
    ]
    # What typer reads instead of the wrapper's own.
    wrapped.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *added])  # type: ignore[attr-defined]
    wrapped.__annotations__ = command.__annotations__ | {name: kind for name, (kind, _) in _OPTIONS.items()}
    return wrapped
