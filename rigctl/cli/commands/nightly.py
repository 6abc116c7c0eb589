"""Run a scenario every night, and report what changed."""

import os
import re
import signal
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, Literal

import typer
from pydantic import BeforeValidator, Field, ValidationError

from rigctl.base.errors import InputError, RigctlError, RigError
from rigctl.base.logs import about
from rigctl.base.units import format_duration
from rigctl.cli.errors import end_by
from rigctl.cli.options import Json, ScenarioArgument, StoreAddress, WithoutUnreachable
from rigctl.cli.output import Model, UtcText, Versioned, at
from rigctl.findings.text import plural
from rigctl.nightly import install as installer
from rigctl.nightly.commands import Commands, deadline_s, prune_logs
from rigctl.nightly.message import check_channel, night_sentence
from rigctl.nightly.night import Done, one_night, without_store
from rigctl.nightly.schedule import alone, date_of, moment, next_due
from rigctl.nightly.settings import NIGHTLY_NAME, NightlySettings, load_settings, names, state_folder, store_address
from rigctl.records import Night, NightOutcome, RunPlan, Unmet
from rigctl.rig.inventory import Rig
from rigctl.rig.load import rigs_folder
from rigctl.scenario.load import Overrides, load_plan
from rigctl.site.folder import check_folder
from rigctl.store import NoStoreError, SilentStoreError, open_store
from rigctl.store.address import parse_address, written_address
from rigctl.store.open import default_path

nightly_commands = typer.Typer(no_args_is_help=True, add_completion=False)
_WORDS: Final = {
    NightOutcome.QUIET: "nothing new",
    NightOutcome.NEWS: "news",
    NightOutcome.UNEXPECTED: "not as expected",
    NightOutcome.FAILED: "failed",
    NightOutcome.OVERDUE: "ended at its deadline",
    NightOutcome.BUSY: "the rig was in use",
    NightOutcome.MISSED: "missed",
}
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the nightly.", autocompletion=names)]
Site = Annotated[
    Path | None, typer.Option("--publish", metavar="DIR", help="Update the site in this folder after each night.")
]
Notify = Annotated[
    str | None,
    typer.Option("--notify", metavar="URL|COMMAND", help="Send the news of a night to URL (POST) or COMMAND (stdin)."),
]


@nightly_commands.command("install")
def install_nightly(
    scenario: ScenarioArgument,
    at: Annotated[str, typer.Option("--at", metavar="HH:MM", help="Run at this local time, as 02:30.")],
    rig: Annotated[
        str | None,
        typer.Option("--rig", metavar="RIG", help="Run on this rig file or bundled rig (default: the scenario's)."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the nightly (default: SCENARIO-RIG).")
    ] = None,
    store: StoreAddress = None,
    wait: Annotated[str, typer.Option("--wait", metavar="D", help="Wait at most D for nodes that are in use.")] = "30m",
    deadline: Annotated[
        str | None,
        typer.Option("--deadline", metavar="D", help="End a run after D (default: its longest time + 10 min)."),
    ] = None,
    no_confirm: Annotated[bool, typer.Option("--no-confirm", help="Report changes without a second run.")] = False,
    without_unreachable: WithoutUnreachable = False,
    publish: Site = None,
    notify: Notify = None,
    notify_format: Annotated[
        Literal["json", "markdown"], typer.Option("--notify-format", help="Format of the message to a URL.")
    ] = "json",
    header: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="NAME: VALUE", help="Add this header to the POST; repeatable."),
    ] = None,
    secrets: Annotated[
        Path | None,
        typer.Option("--secrets", metavar="FILE", help="Read ${NAME} from this file (mode 0600) or the environment."),
    ] = None,
) -> None:
    """Run SCENARIO every night: write its settings, and a systemd timer or the line for cron."""
    plan, loaded = load_plan(scenario, Overrides(rig))
    if publish is not None:
        check_folder(publish.expanduser())
    chosen = name or _name_of(plan)
    given = {
        "scenario": _absolute_reference(scenario),
        "rig": _absolute_reference(rig) if rig is not None else _rig_of(loaded),
        "at": at,
        "store": str(default_path()) if store is None else written_address(store),
        "wait": wait,
        "deadline": deadline,
        "confirm": not no_confirm,
        "without_unreachable": without_unreachable,
        "publish": None if publish is None else str(publish.expanduser().absolute()),
        "notify": notify,
        "notify_format": notify_format,
        "headers": _headers(header or []),
        "secrets": None if secrets is None else str(secrets.expanduser().absolute()),
    }
    settings = _check_settings(chosen, {key: value for key, value in given.items() if value is not None})
    check_channel(settings, os.environ)
    parse_address(store_address(settings, os.environ))
    _print_installed(chosen, installer.install(chosen, settings, time.time()))


@nightly_commands.command("run")
def run_night(name: Name) -> int:
    """Run one night of NAME: measure, compare, confirm, notify.

    The timer starts this command.
    """
    end_by((signal.SIGTERM, signal.SIGHUP), "rigctl nightly was ended by a signal")
    settings = load_settings(name)
    _use_zone(settings)
    remembered = installer.state(name, time.time())
    logs = state_folder() / "logs" / name
    if remembered.damage is not None:
        print(f"rigctl: {remembered.damage}", file=sys.stderr)
    with alone(remembered.file, name), about():
        prune_logs(logs)
        work = Commands(settings, logs / f"{datetime.now():%Y%m%d-%H%M%S}")
        try:
            with open_store(store_address(settings, os.environ)) as store:
                done = one_night(work, store.history, remembered, time.time)
        except (InputError, SilentStoreError) as error:
            done = without_store(work, error, remembered, time.time())
    return _print_night(done, settings)


def _print_night(done: Done, settings: NightlySettings) -> int:
    """Print a night's result. Return exit code 0 (nothing new), 1 (news, or an unmet expectation) or 3 (failure)."""
    night = done.night
    ran = f" Run {night.run}." if night.run else ""
    if done.message is not None:
        print(done.message.markdown, end="")
    else:
        print(f"{night.scenario} on {night.rig}, {date_of(night.due_at)}: measured, nothing new.{ran}")
    if done.unpublished is not None:
        print(f"rigctl: the site was not published: {done.unpublished}", file=sys.stderr)
    if done.undelivered is not None:
        raise RigError(f"{done.undelivered}. The message is kept, and goes out with the next one")
    if done.message is not None and settings.notify is None:
        print("No message was sent. To get one: rigctl nightly install … --notify URL", file=sys.stderr)
    if night.outcome is NightOutcome.QUIET:
        return 0 if done.unpublished is None else RigError.exit_code
    return 1 if night.outcome in {NightOutcome.NEWS, NightOutcome.UNEXPECTED} else RigError.exit_code


@nightly_commands.command("status")
def show_nightlies(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show only NAME.", autocompletion=names)] = None,
    as_json: Json = False,
) -> None:
    """Show when each nightly runs next, and how its last nights went."""
    known: list[_Nightly] = []
    damaged: list[str] = []
    if name is not None:
        load_settings(name)
    for each in [name] if name is not None else names():
        try:
            known.append(_read_nightly(each))
        except RigctlError as error:
            damaged.append(f"{each}: {error}")
    damaged += [f"{own.name}: {own.damage}" for own in known if own.damage]
    if as_json:
        print(StatusDocument.text_of(nightlies=known, damaged=damaged))
        return
    if not known and not damaged:
        print("No nightly is installed: rigctl nightly install SCENARIO --rig RIG --at 02:30")
    for own in known:
        print(own.answer)
        for night in own.nights:
            word = str(night.outcome) if night.outcome else "unknown"
            text = " ".join(filter(None, (night.run, night_sentence(night))))
            print(f"  {date_of(night.due_at, own.own.at.tzinfo)}  {word:<15} {text}".rstrip())
    for message in damaged:
        print(message)


@nightly_commands.command("remove")
def remove_nightly(name: Name) -> None:
    """Remove NAME: its settings and its timer.

    Its runs stay in the store.
    """
    for path in installer.uninstall(name):
        print(f"removed {path}")
    print("Its runs stay in the store. If you added a line for it to your crontab, remove the line: crontab -e")


def _check_settings(name: str, given: dict[str, object]) -> NightlySettings:
    if not NIGHTLY_NAME.fullmatch(name):
        raise InputError(f'--name "{name}": expected letters, digits, "-", "_" and ".", at most 61')
    try:
        return NightlySettings.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InputError(f"--{first.get('ctx', {}).get('error', first['msg'])}") from None


def _name_of(plan: RunPlan) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{plan.scenario_name}-{plan.rig_name}").strip("-._")[:61] or "nightly"


def _absolute_reference(reference: str) -> str:
    path = Path(reference).expanduser()
    return str(path.absolute()) if path.is_file() else reference


def _rig_of(rig: Rig) -> str:
    """Return the path of a rig file; for a bundled rig its name, because an update of rigctl may move its file."""
    assert rig.source is not None
    return rig.source.stem if rig.source.parent == rigs_folder() else str(rig.source.absolute())


def _headers(given: list[str]) -> dict[str, str]:
    headers = {}
    for text in given:
        key, value = (part.strip() for part in text.partition(":")[::2])
        if not re.fullmatch(r"[A-Za-z0-9-]+", key) or not value:
            raise InputError('--header: expected NAME: VALUE, as in "Authorization: Bearer ${TOKEN}"')
        if key.lower() in {"authorization", "cookie", "x-api-key", "private-token"} and "${" not in value:
            raise InputError(f"--header {key}: is a secret. Give ${{NAME}} here, and NAME=… in the file of --secrets")
        headers[key] = value
    return headers


def _print_installed(name: str, done: installer.Installation) -> None:
    own = done.settings
    when = f"every night at {own.at:%H:%M}{_in_zone(own)}; next: {moment(next_due(own.at, time.time()), own.at.tzinfo)}"
    if done.cron is None:
        print(f"{name} runs {when}.")
    else:
        print("No systemd user manager runs here. Add this line to your crontab (crontab -e):")
        print(done.cron)
        print(f"cron then starts {name} {when}. That is this machine's time zone.")
        if os.environ.get("TZ", own.zone) != own.zone:
            print(f"TZ={os.environ['TZ']} of this shell does not count for cron.")
    print(f"A night ends after at most {format_duration(own.wait)} of waiting and", end=" ")
    print(f"{format_duration(deadline_s(own))} of measuring.")
    print(f"settings {done.file}")
    for unit in done.units:
        print(f"unit     {unit}")
    if done.remark:
        print(done.remark)
    print(f"Try it now: rigctl nightly run {name}")


def _in_zone(own: NightlySettings) -> str:
    return f" ({own.zone})" if own.zone else ""


def _use_zone(own: NightlySettings) -> None:
    """Make the zone of a nightly the local time of this process and of the commands that it starts."""
    if own.zone is not None:
        os.environ["TZ"] = own.zone
        time.tzset()


class NightStatus(Model):
    """One scheduled run of a nightly: its times, its outcome and its news."""

    due_at: UtcText
    began_at: UtcText | None
    ended_at: UtcText | None
    outcome: Literal["quiet", "news", "not-as-expected", "failed", "overdue", "busy", "missed"] | None = Field(
        description="null: no outcome yet, or the night was killed."
    )
    run: str | None
    reason: str | None = Field(description="Why the night was not measured, or only in part.")
    unmet: list[Unmet] = Field(description="Bounds of the scenario's `expect` that the run did not meet.")
    news: str | None = Field(description="The largest change, as `rigctl regress` prints it.")


class NightlyStatus(Model):
    """A scenario that runs every night: its timer and its last nights."""

    name: str
    scenario: str = at("own.scenario")
    rig: str = at("own.rig")
    zone: str | None = at("own.zone", "Time zone of its time of day; null: installed by an older rigctl.")
    answer: str = Field(description="The state in one sentence.")
    next_due_at: UtcText
    timer: Annotated[
        Literal["active", "inactive", "none"],
        BeforeValidator(lambda active: {True: "active", False: "inactive", None: "none"}[active]),
    ] = at("active", "State of the systemd timer; none: no timer, only cron can start the nightly.")
    undelivered: int = at("untold", "Number of nights whose message could not be delivered yet.")
    nights: list[NightStatus] = Field(description="The latest first.")


class StatusDocument(Versioned):
    """All scenarios that run every night for this user."""

    nightlies: list[NightlyStatus]
    damaged: list[str] = Field(description="A message for each nightly whose settings, state or store cannot be read.")


@dataclass(frozen=True, slots=True)
class _Nightly:
    name: str
    own: NightlySettings
    nights: list[Night]  # the latest first
    untold: int
    active: bool | None
    damage: str | None

    @property
    def next_due_at(self) -> float:
        return next_due(self.own.at, time.time())

    @property
    def answer(self) -> str:
        last, zone = "has not run yet", self.own.at.tzinfo
        if self.nights:
            night = self.nights[0]
            became = _WORDS[night.outcome] if night.outcome else "is running, or was killed"
            last = f"last night ({date_of(night.due_at, zone)}): {became}"
        untold = f"; {plural(self.untold, 'night is', 'nights are')} still to be reported" if self.untold else ""
        stopped = "; its timer does not run" if self.active is False else ""
        return f"{self.name}: {last}; next: {moment(self.next_due_at, zone)}{_in_zone(self.own)}{untold}{stopped}."


def _read_nightly(name: str) -> _Nightly:
    own, now_s = load_settings(name), time.time()
    try:
        with open_store(store_address(own, os.environ), create=False) as store:
            nights = [night for night in store.history.nights(*own.stored_as)[::-1] if night.due_at <= now_s]
    except NoStoreError:  # no night has run yet
        nights = []
    state = installer.state(name, now_s)
    shown = nights[:14]  # of two weeks
    return _Nightly(name, own, shown, len(state.pending), installer.timer_active(name), state.damage)
