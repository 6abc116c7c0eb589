"""The command line: registers the commands, and is the one place where errors become exit codes (design, section 3)."""

import atexit
import contextlib
import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer
from typer.exceptions import TyperException

from rigctl.base.errors import InputError, Interrupted, RigctlError, RigError
from rigctl.base.processes import allow_descriptors, limit_met
from rigctl.base.texts import printable_lines
from rigctl.base.version import __version__
from rigctl.cli import (
    accept,
    agent,
    check,
    compare,
    display,
    expect,
    export,
    import_runs,
    init,
    nightly,
    plan,
    publish,
    regress,
    report,
    rig,
    run,
    runs,
    show,
    tag,
)
from rigctl.cli.common import Debug, LogFile, LogFormat, Verbose, set_up, with_common
from rigctl.cli.log import log_error, on_standard_error
from rigctl.cli.options import with_resumed
from rigctl.cli.standard_output import OutputError, tell_output_errors

app = typer.Typer(
    help="Measure a matrix of TCP settings and node pairs, and explain the results.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rigctl {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Debug = False,
    verbose: Verbose = 0,
    log_format: LogFormat = None,
    log_file: LogFile = None,
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    set_up(debug=debug, verbose=verbose, log_format=log_format, log_file=log_file)


app.command(name="run")(run.run)
app.command(name="plan")(plan.plan)
app.command(name="check")(check.check)
app.command(name="expect")(expect.expect)
app.command(name="init")(init.init)
app.command(name="show")(show.show)
app.command(name="compare")(compare.compare)
app.command(name="export")(export.export)
app.command(name="import")(import_runs.import_runs)
app.command(name="report")(report.report)
app.command(name="publish")(publish.publish)
app.command(name="tag")(tag.tag)
app.command(name="display")(display.display)
app.command(name="regress")(regress.regress)
app.command(name="accept")(accept.accept)
app.add_typer(runs.app, name="runs")
app.add_typer(rig.app, name="rig", help="A rig file from hosts; the virtual rig; any command on any node.")
app.add_typer(nightly.app, name="nightly")
app.add_typer(agent.app, name="agent", help="The agent's binaries.")
for group in (app, runs.app, rig.app, nightly.app, agent.app):
    for registered in group.registered_commands:
        assert registered.callback is not None
        registered.callback = with_common(registered.callback)


def exit_code(arguments: list[str]) -> int:
    """Run one command; print at most one message for an error; give the exit code of design, section 3."""
    try:
        _check(arguments)
        if sys.stdout is None:
            # Whatever is opened next would be taken for it.
            raise RigError("standard output is closed")
        outcome = app(with_resumed(arguments), prog_name="rigctl", standalone_mode=False)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        return _failed(error)
    return outcome if isinstance(outcome, int) else 0


def _failed(error: BaseException) -> int:
    """Print what there is to say of `error`, in one message, and give its exit code."""
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return Interrupted.exit_code
    if isinstance(error, TyperException):
        # A usage error, in typer's own words; they can show themselves, though their base does not say so.
        error.message = error.message.removeprefix("Value error, ")
        show: Callable[[], None] = getattr(error, "show", functools.partial(_say, RigctlError(str(error))))
        show()
        return InputError.exit_code
    if isinstance(error, OutputError):
        _discard_output()
        if error.reader_is_gone:  # `rigctl show | head`: nothing is wrong
            return 0
    told = _told(error)
    _say(told, error)
    return told.exit_code


def _told(error: BaseException) -> RigctlError:
    """What to say of an error, whoever raised it."""
    if isinstance(error, RigctlError):
        return error
    if isinstance(error, OutputError):
        return RigError(str(error))
    if (limit := limit_met(error)) is not None:
        return RigError(limit)
    if isinstance(error, OSError):
        reason = error.strerror or str(error) or type(error).__name__
        if error.filename is not None:
            return RigError(f"{error.filename}: {reason}")
        return RigError(f"{reason}: the operating system refused something to rigctl; --debug shows what")
    what = " ".join(str(error).split())[:300]
    return RigError(f"internal error: {type(error).__name__}: {what}. Please report it, with the output of --debug")


def _check(arguments: list[str]) -> None:
    """Refuse what is no text: Python takes other bytes for halves of characters, which nothing can store or print."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            shown = os.fsencode(argument).decode("utf-8", "backslashreplace")
            raise InputError(f'"{shown}" contains bytes that are not UTF-8. Name files and values in UTF-8') from None


def _discard_output() -> None:
    """What is still to be written goes nowhere: else the interpreter complains of it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _say(error: RigctlError, cause: BaseException | None = None) -> None:
    """One message on standard error; with --debug the traceback of its cause."""
    log_error(error)
    if os.environ.get("RIGCTL_DEBUG"):
        traceback.print_exception(cause or error)
    elif not on_standard_error():
        # What nodes, switches and files say may be in it.
        with contextlib.suppress(OutputError):
            print(f"rigctl: {printable_lines(str(error))}", file=sys.stderr)


def main() -> None:
    tell_output_errors()
    allow_descriptors()
    # Else pydantic reads the metadata of every installed package for plugins, when it is first used.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    _end(exit_code(sys.argv[1:]))


def _end(code: int) -> NoReturn:
    """End this process without taking it apart: to search all of it for cycles takes longer than to make a page."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OutputError, OSError, ValueError, AttributeError):  # closed, or never open
            stream.flush()
    os._exit(code)
