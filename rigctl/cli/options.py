"""Options that several commands share, and the shell completion of their values."""

import functools
import inspect
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import typer

from rigctl.base.errors import InputError, RigctlError
from rigctl.base.logs import JsonLines, TextLines
from rigctl.base.units import UnitError, parse_duration

LogForm: TypeAlias = Literal["text", "json"]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback with an error.")]
Verbose = Annotated[
    int, typer.Option("--verbose", "-v", count=True, help="Log what rigctl does; -vv: also SSH.", show_default=False)
]
LogFormat = Annotated[
    LogForm | None,
    typer.Option("--log-format", help="Log in this format, to standard error unless --log-file is given."),
]
LogFile = Annotated[
    Path | None, typer.Option("--log-file", metavar="FILE", help="Append the log to this file, not to standard error.")
]


@dataclass(slots=True)
class _Log:
    """Values of --log-format and --log-file of this process; None if not given."""

    form: LogForm | None = None
    file: Path | None = None


_LOG: Final = _Log()
_log = logging.getLogger("rigctl")
_log.addHandler(logging.NullHandler())  # keeps rigctl's warnings off standard error


def set_up(debug: Debug = False, verbose: Verbose = 0, log_format: LogFormat = None, log_file: LogFile = None) -> None:
    """Apply the debug and log options, which may stand before or after the command's name. Raises `InputError`."""
    if debug:
        os.environ["RIGCTL_DEBUG"] = "1"
    if log_format is not None or log_file is not None:
        _keep_log(log_format or _LOG.form, log_file or _LOG.file)
    if verbose:
        logging.basicConfig(format="%(asctime)s %(name)s: %(message)s", level=logging.WARNING)  # to standard error
        _log.setLevel(logging.INFO if verbose == 1 else logging.DEBUG)
        logging.getLogger("asyncssh").setLevel({1: logging.WARNING, 2: logging.INFO}.get(verbose, logging.DEBUG))


def _keep_log(form: LogForm | None, file: Path | None) -> None:
    """Log messages of level INFO and above; replace an earlier log. Raises `InputError` if `file` cannot be written."""
    try:
        handler = logging.StreamHandler() if file is None else logging.FileHandler(file, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--log-file {file}: cannot be written: {error.strerror or error}") from error
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logging.basicConfig(handlers=[handler], force=True)
    _LOG.form, _LOG.file = form, file
    if _log.level == logging.NOTSET or _log.level > logging.INFO:
        _log.setLevel(logging.INFO)


def is_stderr_logged() -> bool:
    """Tell whether standard error has the JSON log; then progress and messages must not be printed there."""
    return _LOG.file is None and _LOG.form == "json"


def log_error(error: RigctlError) -> None:
    """Log the error that ended the command, if --log-format or --log-file is given."""
    if _LOG.form or _LOG.file:
        name = "input" if isinstance(error, InputError) else type(error).__name__.removesuffix("Error").lower()
        _log.error("%s", error, extra={"event": "failed", "error": name, "exit_code": error.exit_code})


def take_options(take: Callable[..., Any], parameter: str | None = None) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that adds the parameters of `take`, as options, to those of a command.

    With `parameter`, they replace the command's parameter of that name, which receives the result of `take`.
    """
    options = inspect.signature(take).parameters

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def wrapped(*arguments: object, **named: Any) -> object:  # noqa: ANN401 — the command's types
            value = take(**{name: named.pop(name) for name in options})
            return command(*arguments, **named, **({} if parameter is None else {parameter: value}))

        own = inspect.signature(command).parameters
        place = len(own) if parameter is None else list(own).index(parameter)
        kept = [option for name, option in own.items() if name != parameter]
        # typer reads the options from these two attributes.
        signature = inspect.Signature([*kept[:place], *options.values(), *kept[place:]])
        wrapped.__signature__ = signature  # type: ignore[attr-defined]
        wrapped.__annotations__ = command.__annotations__ | take.__annotations__
        return wrapped

    return decorate


UNFINISHED: Final = "unfinished"
"""Value of `--resume` for the latest unfinished run of the scenario; `complete_resume` adds this value."""


def complete_scenario(incomplete: str) -> list[str]:
    from rigctl.scenario.load import find_scenarios

    return [name for name in find_scenarios() if name.startswith(incomplete)]


def complete_rig(incomplete: str) -> list[str]:
    from rigctl.rig.load import rig_names

    return [name for name in rig_names() if name.startswith(incomplete)]


def complete_either(incomplete: str) -> list[str]:
    return sorted({*complete_scenario(incomplete), *complete_rig(incomplete)})


def complete_run(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the ids of stored runs that begin with `incomplete`, the latest first; none if the store is unreadable."""
    from rigctl.store import open_store

    try:
        with open_store(ctx.params.get("store"), create=False) as opened:
            known = [*reversed(opened.run_ids()), "latest", "latest~1"]
            return [run for run in known if run.startswith(incomplete)]
    except RigctlError:
        return []


ScenarioArgument = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO", help="A scenario file, or the name of a bundled scenario.", autocompletion=complete_scenario
    ),
]
RunId = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN",
        help="Run id, its beginning or end, or latest~N (default: latest).",
        autocompletion=complete_run,
    ),
]
RigOption = Annotated[
    str | None,
    typer.Option(
        "--rig",
        metavar="RIG",
        help="Use this rig file or bundled rig in place of the scenario's.",
        autocompletion=complete_rig,
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=V1,V2", help="Replace an axis or a key, as in pairs=pi1:pi2; repeatable."),
]
RigSets = Annotated[
    list[str] | None,
    typer.Option(
        "--rig-set", metavar="PATH=VALUE", help="Replace a value of the rig file, as in trunk.rate=10G; repeatable."
    ),
]
StoreAddress = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar="RIGCTL_STORE",
        metavar="URL",
        help="Use this store: a file, or postgresql://user@host/name (default: rigctl.db in the user's data folder).",
    ),
]
RigArgument = Annotated[str, typer.Argument(metavar="RIG", help="A rig file, or the name of a bundled rig.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, as docs/reference/json.md describes it.")]
OutputFile = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file (default: standard output).")
]
Anonymous = Annotated[
    bool,
    typer.Option(
        "--anonymous",
        help="Give nodes and switches letters; leave out addresses, tags, captures, files and your texts. Kernels, "
        "cards, settings and figures stay.",
    ),
]
FORMAT: Final = typer.Option("--format", "-f", help="Print or write this format.")
"""The option `--format`; the type of its parameter lists the formats of the command."""
JsonFormat = Annotated[bool, typer.Option("--json", help="The same as --format json.")]


def find_store_address(ctx: typer.Context, store: str | None) -> str | None:
    """Return the value of `--store`, given before or after the name of a subcommand, or None."""
    return store or (ctx.parent.params.get("store") if ctx.parent is not None else None)


def parse_percent(text: str) -> float:
    """Return the number in `2`, `2%` or `2 %`. Raise `typer.BadParameter` unless it is above 0 and at most 100."""
    try:
        value = float(str(text).strip().removesuffix("%"))
    except ValueError:
        value = 0.0
    if not 0 < value <= 100:
        raise typer.BadParameter(f"{text}: expected percent above 0, as 2 or 0.5")
    return value


BoundOption = Annotated[
    float,
    typer.Option(
        "--bound", metavar="PERCENT", parser=parse_percent, help="Treat changes below this percentage as unimportant."
    ),
]
Wait = Annotated[
    str | None,
    typer.Option(
        "--wait", metavar="D", help="Wait at most D, as 30m, for nodes that are in use: first come, first served."
    ),
]
WithoutUnreachable = Annotated[
    bool, typer.Option("--without-unreachable", help="If some nodes do not answer, measure the pairs without them.")
]


@dataclass(frozen=True)
class RunOptions:
    """Options of `run`. `plan` accepts all of them, so that one command line serves both."""

    rig: RigOption = None
    rig_sets: RigSets = None
    sets: Sets = None
    duration: Annotated[
        str | None, typer.Option("--duration", metavar="D", help="Set the duration of each test, as 5s or 30m.")
    ] = None
    repeat: Annotated[int | None, typer.Option("--repeat", metavar="N", help="Measure every test N times.")] = None
    store: StoreAddress = None
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE.html",
            help="Write the report to this file (default: SCENARIO-RUN.html in $RIGCTL_REPORTS, or rigctl-reports).",
        ),
    ] = None
    no_report: Annotated[
        bool,
        typer.Option("--no-report", help="Write no report, as with RIGCTL_REPORTS=none; rigctl report makes it later."),
    ] = False
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="[RUN]",
            help="Continue a stored run, by default the latest unfinished one of SCENARIO: measure what is missing.",
            autocompletion=complete_run,
        ),
    ] = None
    capture: Annotated[
        list[int] | None,
        typer.Option(
            "--capture", metavar="TEST", help="Capture the headers of this test's frames in pcap files; repeatable."
        ),
    ] = None
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="NAME=VALUE", help="Give the run this tag, as firmware=1.2.3; repeatable."),
    ] = None
    control: Annotated[
        str | None,
        typer.Option(
            "--control",
            metavar="RUN",
            help="Subtract this run of the same scenario over a plain cable or another switch: show what is added.",
            autocompletion=complete_run,
        ),
    ] = None
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="AXIS=VALUE",
            help="Measure every test also with this value, in turn (ABBA), and compare both, as in congestion=bbr.",
        ),
    ] = None
    bound: BoundOption = 2.0
    wait: Wait = None
    without_unreachable: WithoutUnreachable = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the run's id only.")] = False


def parse_wait(given: str | None) -> float:
    """Return the seconds of `--wait`, 0 if it is not given. Raises `InputError`."""
    try:
        waiting_s = 0.0 if given is None else parse_duration(given, "--wait")
    except UnitError as error:
        raise InputError(f"{error}") from None
    if waiting_s > 86400:
        raise InputError(f'--wait "{given}": at most 24h')
    return waiting_s


def complete_resume(arguments: list[str]) -> list[str]:
    """Return the arguments with `unfinished` after a `--resume` without a value, because typer requires a value."""
    completed: list[str] = []
    for word, following in zip_longest(arguments, arguments[1:], fillvalue="-"):
        completed.append(word)
        if word == "--resume" and (following.startswith("-") or following.endswith((".yaml", ".yml"))):
            completed.append(UNFINISHED)
    return completed
