"""The command line: lists the commands, imports the invoked command, runs it, and returns its exit code."""

import gc
import os
import sys
from collections.abc import Collection, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from rigctl.base.errors import InputError, RigError
from rigctl.base.processes import allow_descriptors, end_programs_by_signals
from rigctl.base.version import __version__
from rigctl.cli.errors import exit_code_of, flush_output, raise_output_errors
from rigctl.cli.options import complete_resume, set_up, take_options

COMMANDS: Final = {
    "run": "commands.run:measure_scenario",
    "plan": "commands.plan:show_plan",
    "check": "commands.check:check_rig",
    "expect": "commands.expect:calculate_rates",
    "init": "commands.init:copy_scenario_or_rig",
    "show": "results.show:show_run",
    "compare": "results.compare:compare_two_runs",
    "export": "results.export:export_runs",
    "import": "results.import_runs:import_runs",
    "report": "results.report:write_report",
    "publish": "results.publish:write_site",
    "tag": "results.tag:tag_run",
    "display": "commands.display:show_display",
    "regress": "results.regress:show_regressions",
    "accept": "results.accept:accept_levels",
    "runs": "results.runs:runs_commands",
    "rig": "commands.rig:rig_commands",
    "nightly": "commands.nightly:nightly_commands",
    "agent": "commands.agent:agent_commands",
}
"""Module and function (or command group) of each command. The module's docstring is the command's help."""

_HELP: Final = ["-h", "--help"]
_PANELS: Final = {
    "Nodes and time": ("resume", "wait", "without_unreachable", "display", "dry_run"),
    "Results": ("store", "report", "no_report", "tag", "capture", "bound", "quiet", "as_json"),
}
"""Help panels for the options of `run` and `plan`; options that are not listed come first."""
_EVERY: Final = ("debug", "verbose", "log_format", "log_file", "help")


class CommandGroup(TyperGroup):
    """Imports a command's module only when the command is invoked, because imports take time."""

    def __init__(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 — typer exports no click types
        super().__init__(*arguments, **named)
        _arrange(self, {})

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 — typer exports no click types
        self.load(args[0])
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 — typer exports no click types
        """Return the command names. Read the help of a module that is not imported yet from its file."""
        for name, command in self.commands.items():
            if not command.help:
                file = Path(__file__).parent.joinpath(*COMMANDS[name].partition(":")[0].split("."))
                command.help = file.with_suffix(".py").read_text("utf-8").split('"""')[1].partition("\n")[0]
        return super().list_commands(ctx)

    def load(self, name: str) -> None:
        """Import the command of this name; typer reports an unknown name."""
        if name in COMMANDS:
            self.commands[name] = _command(name)


@cache
def _command(name: str) -> Any:  # noqa: ANN401 — typer exports no click types
    place, _, attribute = COMMANDS[name].partition(":")
    module = import_module(f"rigctl.cli.{place}")
    target = getattr(module, attribute)
    if not isinstance(target, typer.Typer):
        function, target = target, typer.Typer(add_completion=False)
        target.command(name)(function)
    for registered in (*target.registered_commands, target.registered_callback):
        if registered is not None and registered.callback is not None:
            registered.callback = take_options(set_up)(registered.callback)
    command = typer.main.get_command(target)
    command.name = name
    command.help, _, examples = (module.__doc__ or "").strip().partition("\n\nExamples:\n")
    command.epilog = "\n\n".join(("Examples:", *map(str.strip, examples.splitlines()))) if examples else None
    _arrange(command, _PANELS if name in ("run", "plan") else {})
    return command


def _arrange(command: Any, panels: Mapping[str, Collection[str]]) -> None:  # noqa: ANN401 — typer exports no click types
    """Put a command's options into help panels, show no type for flags, and list the choices of an option."""
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
for _name in COMMANDS:
    app.command(_name)(lambda: None)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rigctl {__version__}")
        raise typer.Exit


@app.callback()
@take_options(set_up)
def _options(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None: ...


def every_command() -> CommandGroup:
    """Return the command line with all commands imported, for tests and for the documentation of commands."""
    group = typer.main.get_command(app)
    assert isinstance(group, CommandGroup)
    for name in COMMANDS:
        group.load(name)
    return group


def exit_code(arguments: list[str]) -> int:
    """Run the command of these arguments, print at most one error message, and return the exit code."""
    try:
        _check(arguments)
        if sys.stdout is None:
            # If rigctl went on, the next file that it opens would get descriptor 1, and print() would write into it.
            raise RigError("standard output is closed")
        outcome = app(complete_resume(arguments), prog_name="rigctl", standalone_mode=False)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        return exit_code_of(error)
    return outcome if isinstance(outcome, int) else 0


def _check(arguments: list[str]) -> None:
    """Raise `InputError` for an argument that is not UTF-8, because it can be neither stored nor printed."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            shown = os.fsencode(argument).decode("utf-8", "backslashreplace")
            raise InputError(f'"{shown}" contains bytes that are not UTF-8. Name files and values in UTF-8') from None


def main() -> None:
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # do not search all packages for plugins
    raise_output_errors()
    allow_descriptors()
    end_programs_by_signals()
    code = exit_code(sys.argv[1:])
    flush_output()
    gc.freeze()  # no garbage collection at exit: it would take a third of the time of `rigctl runs`
    sys.exit(code)
