"""Settings of nightlies: a small YAML file for each in the user's configuration folder, with mode 0600."""

import re
from collections.abc import Callable
from datetime import time
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

import yaml
from platformdirs import user_config_path, user_state_path
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from rigctl.base.errors import InputError, RigError
from rigctl.base.files import put
from rigctl.base.units import UnitError, parse_duration
from rigctl.nightly.secret import open_secret
from rigctl.yamlfile import MistakesError, kind, read_document, validated

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}", re.ASCII)
"""Pattern of a name, which becomes the name of files and systemd units."""
_TIME: Final = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
MOST_S: Final = 20 * 3600.0
"""A night ends before the next one."""
FORMATS: Final = ("json", "markdown")


def parse_at(text: object) -> time:
    """Return the local time of `02:30`. Raise `ValueError` for another form."""
    match = _TIME.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f'at "{text}": expected a time of day, as 02:30')
    return time(int(match[1]), int(match[2]))


def parse_span(name: str, value: object) -> float:
    """Return seconds, at most `MOST_S`. Raise `ValueError` for anything else; `name` begins the message."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{name}: expected a time as 30m, found {kind(value)}")  # noqa: TRY004 — pydantic's
    try:
        span_s = parse_duration(value, name)
    except UnitError as error:
        raise ValueError(str(error)) from None
    if span_s > MOST_S:
        raise ValueError(f'{name} "{value}": at most 20h, so that a night ends before the next one')
    return span_s


def _text(name: str) -> BeforeValidator:
    def check(value: object) -> str:
        if not isinstance(value, str) or not value.strip() or "\n" in value or "\0" in value:
            raise ValueError(f"{name}: expected a text of one line, found {kind(value)}")
        return value

    return BeforeValidator(check)


def _address(name: str) -> BeforeValidator:
    def check(value: object) -> object:
        why = open_secret(value) if isinstance(value, str) and "://" in value else None
        if why is not None:
            raise ValueError(f"{name}: {why}")
        return value

    return BeforeValidator(check)


def _flag(name: str) -> BeforeValidator:
    def check(value: object) -> object:
        if not isinstance(value, bool):
            raise ValueError(f"{name}: expected true or false, found {kind(value)}")  # noqa: TRY004 — pydantic's
        return value

    return BeforeValidator(check)


def _format(value: object) -> object:
    if value not in FORMATS:
        raise ValueError(f'notify_format "{value}": expected json or markdown')
    return value


def _span(name: str) -> BeforeValidator:
    checked: Callable[[object], float] = lambda value: parse_span(name, value)  # noqa: E731
    return BeforeValidator(checked)


class Settings(BaseModel):
    """Settings of a nightly: what it runs, when, and whom it tells."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

    scenario: Annotated[str, _text("scenario")] = Field(description="a file's absolute path, or a bundled name")
    rig: Annotated[str, _text("rig")] = Field(description="a file's absolute path, or a bundled name")
    at: Annotated[time, BeforeValidator(parse_at)] = Field(description="local time, as 02:30")
    store: Annotated[str, _text("store"), _address("store")] = Field(description="a path or an SQLAlchemy URL")
    wait: Annotated[float, _span("wait")] = 1800.0
    deadline: Annotated[float, _span("deadline")] | None = None
    confirm: Annotated[bool, _flag("confirm")] = True
    without_unreachable: Annotated[bool, _flag("without_unreachable")] = False
    publish: Annotated[Path, _text("publish")] | None = Field(default=None, description="a folder's absolute path")
    notify: Annotated[str, _text("notify"), _address("notify")] | None = None
    notify_format: Annotated[Literal["json", "markdown"], BeforeValidator(_format)] = "json"
    headers: dict[str, Annotated[str, _text("headers")]] = Field(default_factory=dict)
    secrets: Annotated[Path, _text("secrets")] | None = None

    @property
    def stored_as(self) -> tuple[str, str]:
        """Scenario and rig by their names in runs and nights: without folder and ending."""
        return Path(self.scenario).stem, Path(self.rig).stem


def folder() -> Path:
    """Return the folder of the settings."""
    return user_config_path("rigctl", appauthor=False) / "nightly"


def state_folder() -> Path:
    """Return the folder of logs and of messages that are not delivered yet."""
    return user_state_path("rigctl", appauthor=False) / "nightly"


def file_of(name: str) -> Path:
    return folder() / f"{name}.yaml"


def names() -> list[str]:
    """Return the names of the installed nightlies."""
    return sorted(path.stem for path in folder().glob("*.yaml") if NAME.fullmatch(path.stem))


def load(name: str) -> Settings:
    """Return the settings of `name`. Raise `InputError` if it is not installed, or with all mistakes in its file."""
    path = file_of(name)
    if not NAME.fullmatch(name) or not path.is_file():
        known = ", ".join(names())
        there = f"Installed: {known}" if known else "None is installed: rigctl nightly install"
        raise InputError(f'no nightly "{name}". {there}')
    document = read_document(path)
    settings, wrong = validated(document, Settings)
    if settings is None or wrong:
        raise MistakesError(wrong)
    return settings


def save(name: str, settings: Settings) -> Path:
    """Write the file, readable for its user only, and return its path."""
    path = file_of(name)
    said: dict[str, Any] = settings.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    said["at"] = f"{settings.at:%H:%M}"
    keys = yaml.safe_dump(said, sort_keys=False, allow_unicode=True, width=1000)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        head = f"# What rigctl nightly run {name} does. docs/how-to/nightly.md explains the keys.\n"
        put(path, f"{head}{keys}".encode(), 0o600)
    except OSError as error:
        raise RigError(f"{path}: cannot be written: {error.strerror or error}") from error
    return path
