"""The command line: registers the commands, and is the one place where errors become exit codes (design, section 3)."""

import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import Annotated

import typer
from typer.exceptions import TyperException

from rigctl import __version__
from rigctl.cli import agent, expect, export, init, plan, report, rig, run, runs, show
from rigctl.errors import InputError, Interrupted, RigctlError
from rigctl.texts import printable_lines

app = typer.Typer(
    help="A matrix of TCP settings and node pairs goes in; an honest, explained comparison table comes out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rigctl {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback with an error.")] = False,
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say it.")] = False,
) -> None:
    if debug:
        os.environ["RIGCTL_DEBUG"] = "1"


app.command(name="run")(run.run)
app.command(name="plan")(plan.plan)
app.command(name="expect")(expect.expect)
app.command(name="init")(init.init)
app.command(name="runs")(runs.runs)
app.command(name="show")(show.show)
app.command(name="export")(export.export)
app.command(name="report")(report.report)
app.add_typer(rig.app, name="rig", help="The virtual rig; any command on any node.")
app.add_typer(agent.app, name="agent", help="The agent's binaries.")


def exit_code(arguments: list[str]) -> int:
    """Run one command; print at most one message for an error; give the exit code of design, section 3."""
    try:
        _check(arguments)
        outcome = app(arguments, prog_name="rigctl", standalone_mode=False)
    except RigctlError as error:
        _say(error)
        return error.exit_code
    except typer.Abort:
        return Interrupted.exit_code
    except TyperException as error:
        # A usage error, in typer's own words; they can show themselves, though their base does not say so.
        show: Callable[[], None] = getattr(error, "show", functools.partial(_say, RigctlError(str(error))))
        show()
        return InputError.exit_code
    except KeyboardInterrupt:
        return Interrupted.exit_code
    except BrokenPipeError:
        # The reader of our output went away (`rigctl show | head`): nothing is wrong.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return outcome if isinstance(outcome, int) else 0


def _check(arguments: list[str]) -> None:
    """Refuse what is no text: Python takes other bytes for halves of characters, which nothing can store or print."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            shown = os.fsencode(argument).decode("utf-8", "backslashreplace")
            raise InputError(f'"{shown}" holds bytes that are not UTF-8. Name files and values in UTF-8') from None


def _say(error: RigctlError) -> None:
    if os.environ.get("RIGCTL_DEBUG"):
        traceback.print_exception(error)
    else:
        # What nodes, switches and files say may be in it.
        print(f"rigctl: {printable_lines(str(error))}", file=sys.stderr)


def main() -> None:
    sys.exit(exit_code(sys.argv[1:]))
