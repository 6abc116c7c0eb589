"""The command line: lists the commands, imports the one that is invoked, runs it, and returns its exit code."""

import os
import sys
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperGroup

from rigctl.base.errors import InputError, RigError
from rigctl.base.processes import allow_descriptors
from rigctl.base.version import __version__
from rigctl.cli.common import Debug, LogFile, LogFormat, Verbose, set_up, with_common
from rigctl.cli.errors import exit_code_of, tell_output_errors
from rigctl.cli.options import with_resumed


class Listed(NamedTuple):
    """A command of `rigctl --help`."""

    target: str
    """`module:name` of its function, or of the typer app of a group, in `rigctl.cli`."""
    help: str
    """The first paragraph of its own help, which is not imported for the list."""


COMMANDS: Final = {
    "run": Listed(
        "commands.run:run", "Measure SCENARIO on its rig; print the run's id, the table and where the report is."
    ),
    "plan": Listed(
        "commands.plan:plan",
        "Show the tests, the time they take and the ceiling of each. Touches no node. Takes the options of run.",
    ),
    "check": Listed(
        "commands.check:check",
        "Check a rig before traffic: access, links, MTU of the paths, firewalls, settings. Exit code 3 on an error.",
    ),
    "expect": Listed(
        "commands.expect:expect",
        "Calculate the best possible application rates from a link rate, a frame and its overheads.",
    ),
    "init": Listed("commands.init:init", "Copy a bundled scenario or rig, to start from. Never overwrites a file."),
    "show": Listed("commands.show:show", "Print the answer, the table and the findings of RUN."),
    "compare": Listed(
        "commands.compare:compare", "Compare run B with run A test by test; exit with 1 where something got worse."
    ),
    "export": Listed(
        "commands.export:export", "Write the data of runs as rows, for other systems, or whole for another store."
    ),
    "import": Listed(
        "commands.export:import_runs",
        "Store the runs of FILE…: none where a file is damaged. A run that is there already stays as it is.",
    ),
    "report": Listed(
        "commands.report:report", "Write RUN as one self-contained HTML file, or as parts of a product's page."
    ),
    "publish": Listed(
        "commands.publish:publish",
        "Write the store as a static site: news, trends, a calendar, every run. Only what changed is written again.",
    ),
    "tag": Listed(
        "commands.runs:tag",
        "Give RUN tags, each in the place of one of the same name; print all it has. "
        "`baseline` protects it from prune.",
    ),
    "display": Listed(
        "display.command:display",
        "Show the run in progress on RIG, full screen; without one the latest table, until a run begins. q leaves.",
    ),
    "regress": Listed(
        "commands.regress:regress",
        "Compare RUN with the nights before it: what changed, since when. Exit code 1 where something got worse.",
    ),
    "accept": Listed(
        "commands.regress:accept",
        "Make the levels of RUN the normal ones: `regress` compares later runs with them.",
    ),
    "runs": Listed(
        "commands.runs:app", "List the stored runs, the earliest first. `runs rm` and `runs prune` remove some."
    ),
    "rig": Listed("rig.commands:app", "A rig file from hosts; the virtual rig; any command on any node."),
    "nightly": Listed("nightly.commands:app", "Run a scenario every night, and report what changed."),
    "agent": Listed("rig.agent:app", "The agent's binaries."),
}


class CommandGroup(TyperGroup):
    """Imports the module of a command when it is invoked; the list of commands needs none."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 — typer's click is not public
        self.load(args[0])
        return super().resolve_command(ctx, args)

    def load(self, name: str) -> None:
        """Put the command of this name in its place in the list; an unknown name is left to typer."""
        if name in COMMANDS:
            self.commands[name] = _command(name)


@cache
def _command(name: str) -> Any:  # noqa: ANN401 — typer's click is not public
    module, _, attribute = COMMANDS[name].target.partition(":")
    target = getattr(import_module(f"rigctl.cli.{module}"), attribute)
    if not isinstance(target, typer.Typer):
        function, target = target, typer.Typer(add_completion=False)
        target.command(name)(function)
    for registered in (*target.registered_commands, target.registered_callback):
        if registered is not None and registered.callback is not None:
            registered.callback = with_common(registered.callback)
    made = typer.main.get_command(target)
    made.name = name
    return made


app = typer.Typer(
    cls=CommandGroup,
    help="Measure a matrix of TCP settings and node pairs, and explain the results.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, _listed in COMMANDS.items():
    app.command(_name, help=_listed.help)(lambda: None)


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


def every_command() -> CommandGroup:
    """Return the command line with all commands imported, for the pages and tests that describe them."""
    group = typer.main.get_command(app)
    assert isinstance(group, CommandGroup)
    for name in COMMANDS:
        group.load(name)
    return group


def exit_code(arguments: list[str]) -> int:
    """Run one command; print at most one message for an error. Return its exit code."""
    try:
        _check(arguments)
        if sys.stdout is None:
            # The next file to be opened would be taken for it.
            raise RigError("standard output is closed")
        outcome = app(with_resumed(arguments), prog_name="rigctl", standalone_mode=False)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        return exit_code_of(error)
    return outcome if isinstance(outcome, int) else 0


def _check(arguments: list[str]) -> None:
    """Raise `InputError` for an argument that is not UTF-8: nothing can store or print it."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            shown = os.fsencode(argument).decode("utf-8", "backslashreplace")
            raise InputError(f'"{shown}" contains bytes that are not UTF-8. Name files and values in UTF-8') from None


def main() -> None:
    tell_output_errors()
    allow_descriptors()
    sys.exit(exit_code(sys.argv[1:]))
