"""Options that every command has, before its name and after it: `--debug`, `-v`. And where the log goes."""

import functools
import inspect
import logging
import os
from collections.abc import Callable
from typing import Annotated, Any, Final

import typer

Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback with an error.")]
Verbose = Annotated[
    int,
    typer.Option("--verbose", "-v", count=True, help="Log what rigctl does; -vv: also SSH.", show_default=False),
]
_OPTIONS: Final[dict[str, tuple[Any, Any]]] = {"debug": (Debug, False), "verbose": (Verbose, 0)}
_FORMAT: Final = "%(asctime)s %(name)s: %(message)s"


def set_up(*, debug: bool, verbose: int) -> None:
    """Take effect of what was given; what is not given changes nothing, as it may stand in the other place."""
    if debug:
        os.environ["RIGCTL_DEBUG"] = "1"
    if verbose:
        logging.basicConfig(format=_FORMAT, level=logging.WARNING)  # to standard error
        logging.getLogger("rigctl").setLevel(logging.INFO if verbose == 1 else logging.DEBUG)
        logging.getLogger("asyncssh").setLevel({1: logging.WARNING, 2: logging.INFO}.get(verbose, logging.DEBUG))


def with_common(command: Callable[..., Any]) -> Callable[..., Any]:
    """`command` with the common options behind its own."""

    @functools.wraps(command)
    def wrapped(*arguments: object, debug: bool, verbose: int, **named: object) -> object:
        set_up(debug=debug, verbose=verbose)
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
