"""Settings of nightlies: a YAML file per nightly in the user's configuration folder, with mode 0600.

`${NAME}` in a setting stands for a secret, from the environment or from a file with mode 0600.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from datetime import time
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal
from urllib.parse import parse_qsl, quote, urlsplit

import yaml
from platformdirs import user_config_path, user_state_path
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo

from rigctl.base.errors import InputError, RigError
from rigctl.base.files import put
from rigctl.base.texts import printable
from rigctl.base.units import parse_duration
from rigctl.base.urls import is_password
from rigctl.nightly.zone import zone_named
from rigctl.store.address import passwords_in
from rigctl.yamlfile import describe
from rigctl.yamlfile.fields import FieldError, Flag, parse_quantity, validator_for
from rigctl.yamlfile.read import read_document
from rigctl.yamlfile.validate import validate

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_LINE: Final = re.compile(r"""\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(["']?)(.*?)\2\s*""", re.ASCII)
_ELSEWHERE: Final = (
    "Leave the password to ~/.pgpass, of mode 0600 (PostgreSQL, section 34.16), or write ${NAME} for it, and NAME=… "
    "into the file of --secrets"
)
_MOST_BYTES: Final = 64 * 1024


def fill_in(text: str, secrets: Mapping[str, str], encode: Callable[[str], str] = str) -> str:
    """Return `text` with each `${NAME}` replaced, by `encode` of its value. Raise `InputError` for a missing secret.

    No message has a value.
    """

    def value(found: re.Match[str]) -> str:
        if found[1] not in secrets:
            raise InputError(
                f"the secret {found[1]} is neither in the environment nor in the file of --secrets. Put "
                f"{found[1]}=… into a file of mode 0600 and name it with --secrets"
            )
        return encode(secrets[found[1]])

    return _REFERENCE.sub(value, text)


def secrets_of(file: Path | None, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets in `file` and `environment`, which has precedence. Raise `InputError` for an unsafe file."""
    return (_read(file) if file is not None else {}) | dict(environment)


def _read(file: Path) -> dict[str, str]:
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
            raise InputError(f"--secrets {file}: expected a file of lines NAME=VALUE, at most 64 KiB")
        if found.st_uid != os.geteuid():
            raise InputError(f"--secrets {file}: belongs to another user, so it is not used. Name a copy of your own")
        if found.st_mode & 0o077:
            mode = f"{stat.S_IMODE(found.st_mode):04o}"
            raise InputError(f"--secrets {file}: others may read it (mode {mode}), so it is not used. chmod 600 {file}")
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--secrets {file}: cannot be read: {error}") from None
    secrets = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:  # the line may hold a secret, so the message does not print it
            raise InputError(f"{file}:{number}: expected NAME=VALUE")
        secrets[match[1]] = match[3]
    return secrets


def open_secret(address: str) -> str | None:
    """Return why the URL of a server cannot be stored (it has a password), or None if it can."""
    try:
        parts = urlsplit(address)
        given = [("", parts.password), *((name, value) for name, value in parse_qsl(parts.query) if is_password(name))]
    except ValueError:  # its text may have the password
        return "not an address"
    return _open_password(given)


def _open_password(given: Iterable[tuple[str, object]]) -> str | None:
    """Return why a URL with these passwords, by parameter, cannot be stored; None if each of them is a `${NAME}`."""
    for name, password in given:
        if password and not _REFERENCE.fullmatch(str(password)):
            where = f' (its parameter "{printable(name)}")' if name else ""
            return f"holds a password{where}, which rigctl stores in no file"
    return None


def store_address(settings: "NightlySettings", environment: Mapping[str, str]) -> str:
    """Return the address of the store with each `${NAME}` filled in, as a URL has it. Raise `InputError` as `fill_in`.

    The values stand as they are, so a password needs no %40 there.
    """
    if not _REFERENCE.search(settings.store):
        return settings.store
    secrets = secrets_of(settings.secrets, environment)
    return fill_in(settings.store, secrets, lambda value: quote(value, safe="", errors="surrogateescape"))


NIGHTLY_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}", re.ASCII)
"""Pattern of a nightly's name, which is also used for files and systemd units."""
_TIME: Final = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
MOST_S: Final = 20 * 3600.0
"""Longest duration of a night, so that it ends before the next night."""


def _at(name: str, value: object) -> time:
    match = _TIME.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise FieldError(f'{name} "{value}": expected a time of day, as 02:30')
    return time(int(match[1]), int(match[2]))


def _zone(name: str, value: object) -> str:
    text = _text(name, value)
    if zone_named(text) is None:
        raise FieldError(f'{name} "{text}": no such time zone. Use a name as Europe/Berlin')
    return text


def _in_zone(at: time, validated: ValidationInfo) -> time:
    """Return the time of day with its time zone, if the settings name one."""
    zone = validated.data.get("zone")
    return at.replace(tzinfo=zone_named(zone)) if zone else at


def _span(name: str, value: object) -> float:
    span_s = parse_quantity(name, value, parse_duration, "30m")
    if span_s > MOST_S:
        raise FieldError(f'{name} "{value}": at most 20h, so that a night ends before the next one')
    return span_s


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or "\n" in value or "\0" in value:
        raise FieldError(f"{name}: expected a text of one line, found {describe(value)}")
    return value


def _address(name: str, value: object) -> str:
    text = _text(name, value)
    why = open_secret(text) if "://" in text else None
    if why is not None:
        raise FieldError(f"{name}: {why}")
    return text


def _store(name: str, value: object) -> str:
    text = _text(name, value)
    if "://" not in text and _REFERENCE.search(text):
        raise FieldError(f"{name}: ${{NAME}} can stand in a URL only, as in postgresql://anna:${{NAME}}@db/rigctl")
    try:
        why = _open_password(passwords_in(text))
    except InputError as error:
        raise FieldError(f"{name}: {str(error).removeprefix('store ')}") from None
    if why is not None:
        raise FieldError(f"{name}: {why}. {_ELSEWHERE}")
    return text


def _format(name: str, value: object) -> object:
    if value not in ("json", "markdown"):
        raise FieldError(f'{name} "{value}": expected json or markdown')
    return value


_Text = Annotated[str, validator_for(_text)]
_Path = Annotated[Path, validator_for(lambda name, value: Path(_text(name, value)))]
_Address = Annotated[str, validator_for(_address)]
_Store = Annotated[str, validator_for(_store)]
_Zone = Annotated[str, validator_for(_zone)]
_Span = Annotated[float, validator_for(_span)]


class NightlySettings(BaseModel):
    """Settings of a nightly: its scenario and rig, its time, and where its messages go."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

    scenario: _Text = Field(description="a file's absolute path, or a bundled name")
    rig: _Text = Field(description="a file's absolute path, or a bundled name")
    zone: _Zone | None = Field(default=None, description="time zone of `at`, as Europe/Berlin; default: this machine's")
    at: Annotated[time, validator_for(_at), AfterValidator(_in_zone)] = Field(description="local time, as 02:30")
    store: _Store = Field(description="a path or an SQLAlchemy URL")
    wait: _Span = 1800.0
    deadline: _Span | None = None
    confirm: Flag = True
    without_unreachable: Flag = False
    publish: _Path | None = Field(default=None, description="a folder's absolute path")
    notify: _Address | None = None
    notify_format: Annotated[Literal["json", "markdown"], validator_for(_format)] = "json"
    headers: dict[str, _Text] = Field(default_factory=dict)
    secrets: _Path | None = None

    @property
    def stored_as(self) -> tuple[str, str]:
        """Return the names of scenario and rig as stored with runs: without folder and extension."""
        return Path(self.scenario).stem, Path(self.rig).stem


def folder() -> Path:
    return user_config_path("rigctl", appauthor=False) / "nightly"


def state_folder() -> Path:
    """Return the folder for logs and undelivered messages."""
    return user_state_path("rigctl", appauthor=False) / "nightly"


def file_of(name: str) -> Path:
    return folder() / f"{name}.yaml"


def names() -> list[str]:
    return sorted(path.stem for path in folder().glob("*.yaml") if NIGHTLY_NAME.fullmatch(path.stem))


def load_settings(name: str) -> NightlySettings:
    """Return the settings of `name`. Raise `InputError` if it is not installed, or with all mistakes in its file."""
    path = file_of(name)
    if not NIGHTLY_NAME.fullmatch(name) or not path.is_file():
        known = ", ".join(names())
        hint = f"Installed: {known}" if known else "None is installed. `rigctl nightly install` installs one"
        raise InputError(f'no nightly "{name}". {hint}')
    return validate(read_document(path), NightlySettings)


def save(name: str, settings: NightlySettings) -> Path:
    """Write the settings file, readable only by its user, and return its path."""
    path = file_of(name)
    given = settings.model_dump(exclude_none=True, exclude_defaults=True) | {"at": f"{settings.at:%H:%M}"}
    document = {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}
    keys = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1000)
    head = f"# Settings of `rigctl nightly run {name}`. docs/how-to/nightly.md explains the keys.\n"
    put_private(path, f"{head}{keys}")
    return path


def put_private(path: Path, text: str) -> None:
    """Write a file that only its user can read, and make its folder. Raise `RigError` if that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        put(path, text.encode(), 0o600)
    except OSError as error:
        raise RigError(f"{path}: cannot be written: {error.strerror or error}") from error
