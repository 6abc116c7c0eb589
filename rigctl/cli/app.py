"""The command line: lists the commands, imports the invoked command, runs it, and returns its exit code."""

import os
import sys
from collections.abc import Collection, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from rigctl.base.errors import InputError, RigError
from rigctl.base.processes import allow_descriptors, collect_rarely
from rigctl.base.version import __version__
from rigctl.cli.errors import exit_code_of, flush_output, raise_output_errors
from rigctl.cli.options import Debug, LogFile, LogFormat, Verbose, set_up, with_common, with_resumed

COMMANDS: Final = {
    "run": ("commands.run:run", "Measure SCENARIO on its rig; print the run's id and its table, write the report."),
    "plan": ("commands.plan:plan", "Show the tests of SCENARIO, the time they take and the ceiling of each."),
    "check": (
        "commands.check:check",
        "Check a rig before traffic: access, links, MTU of the paths, firewalls, settings.",
    ),
    "expect": ("commands.expect:expect", "Calculate the best possible application rates from a link rate and a frame."),
    "init": ("commands.init:init", "Copy a bundled scenario or rig, to start from."),
    "show": ("commands.report:show", "Print the answer, the table and the findings of RUN."),
    "compare": (
        "commands.compare:compare",
        "Compare run B with run A test by test; exit with 1 where something got worse.",
    ),
    "export": ("commands.export:export", "Write the data of runs for other systems, or whole runs for another store."),
    "import": (
        "commands.export:import_runs",
        "Store the runs of files that `rigctl export --format rigctl` wrote, or results of iperf3 as a run.",
    ),
    "report": ("commands.report:report", "Write RUN as one self-contained HTML file, or as parts of a product's page."),
    "publish": ("commands.report:publish", "Write the store as a static site: news, trends, a calendar, every run."),
    "tag": ("commands.runs:tag", "Give RUN tags or take some away; print all it has."),
    "display": ("commands.display:display", "Show the run in progress on RIG, full screen."),
    "regress": ("commands.regress:regress", "Compare RUN with the nights before it: what changed, since when."),
    "accept": (
        "commands.regress:accept",
        "Make the levels of RUN the normal ones, with which `regress` compares later runs.",
    ),
    "runs": ("commands.runs:app", "List the stored runs, the earliest first; remove some."),
    "rig": ("commands.rig:app", "Write rig files from hosts, keep virtual rigs up, run commands on nodes."),
    "nightly": ("commands.nightly:app", "Run a scenario every night, and report what changed."),
    "agent": ("commands.agent:app", "Build and list the agent's binaries."),
}
"""Function or group of each command in `rigctl.cli`, and the first line of its help."""

_HELP: Final = ["-h", "--help"]
_PANELS: Final = {
    "Nodes and time": ("resume", "wait", "without_unreachable", "display", "dry_run"),
    "Results": ("store", "report", "no_report", "tag", "capture", "bound", "quiet", "as_json"),
}
"""Groups of the options of `run` and `plan` in their help; those that are not named come first."""
_EVERY: Final = ("debug", "verbose", "log_format", "log_file", "help")
_EXAMPLES: Final = {
    "run": (
        "rigctl run gigablox --duration 5s",
        "rigctl run udp --rig mylab.yaml --set pairs=pi1:pi2 --set size=64,1472 --repeat 4",
    ),
    "plan": ("rigctl plan gigablox --set window=64K,1M", "rigctl plan das2 --all"),
    "check": ("rigctl check mylab.yaml", "rigctl check das2-quick --json"),
    "show": ("rigctl show", "rigctl show latest~1 --all"),
    "compare": ("rigctl compare", "rigctl compare 20261121 latest -o change.html"),
    "export": ("rigctl export --level pairs -o pairs.csv", "rigctl export 20261121 --format json"),
    "report": ("rigctl report", "rigctl report latest~1 -o page.html"),
    "regress": ("rigctl regress", "rigctl regress --baseline firmware=1.2 --confirm"),
    "runs": ("rigctl runs --scenario gigablox --since 2026-11-01", "rigctl runs prune --keep 90d"),
}
"""Two examples of a command."""


class CommandGroup(TyperGroup):
    """Imports the module of a command when the command is invoked; the list of commands needs no module."""

    def __init__(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 — typer's click is not public
        super().__init__(*arguments, **named)
        _arrange(self, {})

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 — typer's click is not public
        self.load(args[0])
        return super().resolve_command(ctx, args)

    def load(self, name: str) -> None:
        """Import the command of this name; typer reports an unknown name."""
        if name in COMMANDS:
            self.commands[name] = _command(name)


@cache
def _command(name: str) -> Any:  # noqa: ANN401 — typer's click is not public
    module, _, attribute = COMMANDS[name][0].partition(":")
    target = getattr(import_module(f"rigctl.cli.{module}"), attribute)
    if not isinstance(target, typer.Typer):
        function, target = target, typer.Typer(add_completion=False)
        target.command(name)(function)
    for registered in (*target.registered_commands, target.registered_callback):
        if registered is not None and registered.callback is not None:
            registered.callback = with_common(registered.callback)
    command = typer.main.get_command(target)
    command.name = name
    command.epilog = "\n\n".join(("Examples:", *_EXAMPLES[name])) if name in _EXAMPLES else None
    _arrange(command, _PANELS if name in ("run", "plan") else {})
    return command


def _arrange(command: Any, panels: Mapping[str, Collection[str]]) -> None:  # noqa: ANN401 — typer's click is not public
    """Put the options of a command into groups in its help; give its flags no type, and choices a line of help."""
    own_help = command.get_help_option(typer.Context(command, help_option_names=_HELP))
    for param in (*command.params, own_help):
        known = next((panel for panel, names in panels.items() if param.name in names), None)
        param.rich_help_panel = "Options of every command" if param.name in _EVERY else known
        if param.param_type_name != "option":
            continue
        choices = param.type_descriptor.choices
        if choices and param.metavar is None:
            param.metavar = param.opts[0].strip("-").upper()
            param.help = f"{param.help} One of {', '.join(map(str, choices))}."
        elif param.is_flag or param.count or param.type_descriptor.annotation is bool:
            param.metavar = ""
    for deeper in getattr(command, "commands", {}).values():
        _arrange(deeper, {})


app = typer.Typer(
    cls=CommandGroup,
    help="Measure a matrix of TCP settings and node pairs, and explain the results.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": _HELP},
)
for _name, (_, _help) in COMMANDS.items():
    app.command(_name, help=_help)(lambda: None)


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
            # The next file to be opened would get its descriptor.
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
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # else it reads what each package has
    raise_output_errors()
    allow_descriptors()
    collect_rarely()
    code = exit_code(sys.argv[1:])
    flush_output()
    sys.exit(code)
