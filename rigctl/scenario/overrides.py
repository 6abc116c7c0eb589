"""Changes to a scenario by the command line: `--set AXIS=V1,V2` or FIELD=VALUE, `--duration`, `--repeat`, `--rig`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rigctl.base.errors import named
from rigctl.base.texts import printable
from rigctl.scenario.against import Variant, read_against
from rigctl.scenario.matrix import spread
from rigctl.scenario.pairs import is_entry
from rigctl.settings import SETTINGS, Setting
from rigctl.yamlfile import Document, Mistake, suggestion
from rigctl.yamlfile.fields import FieldError

FIELDS: Final = (
    "title", "notes", "test", "pairs", "duration", "omit", "repeat", "retest", "until",
    "bins", "max_skew", "max_loss", "folder", "capture",
)  # fmt: skip
"""Top-level keys that `--set` takes beside the axes: all but those that hold sections or rows."""

_LONGEST_IN_TITLE: Final = 60
"""Characters of an option."""


@dataclass(frozen=True, slots=True)
class Overrides:
    """The options as given. `sets` holds the texts after each `--set`, as `window=64K,200K`."""

    rig: str | None = None
    sets: tuple[str, ...] = ()
    duration: str | None = None
    repeat: int | None = None
    rig_sets: tuple[str, ...] = ()  # the texts after each `--rig-set`, as `trunk.rate=10G`
    captures: tuple[int, ...] = ()  # numbers of tests, of each `--capture`
    against: str | None = None  # the text after `--against`, as `congestion=bbr`

    def as_given(self) -> tuple[str, ...]:
        """Return one text per option, to be stored with the run: `--set window=64K`."""
        options = {
            "--rig": self.rig, "--duration": self.duration, "--repeat": self.repeat, "--against": self.against
        }  # fmt: skip
        given = tuple(f"{option} {value}" for option, value in options.items() if value is not None)
        given += tuple(f"--capture {number}" for number in self.captures)
        given += tuple(f"--rig-set {text}" for text in self.rig_sets)
        return given + tuple(f"--set {text}" for text in self.sets)

    @classmethod
    def from_given(cls, texts: Sequence[str]) -> "Overrides":
        """Return the options that `as_given` wrote down."""
        given: dict[str, list[str]] = {}
        for text in texts:
            option, _, value = text.partition(" ")
            given.setdefault(option, []).append(value)
        single = {option: values[0] for option, values in given.items()}
        return cls(
            rig=single.get("--rig"),
            sets=tuple(given.get("--set", ())),
            duration=single.get("--duration"),
            repeat=int(single["--repeat"]) if "--repeat" in single else None,
            captures=tuple(int(number) for number in given.get("--capture", ())),
            rig_sets=tuple(given.get("--rig-set", ())),
            against=single.get("--against"),
        )


@dataclass(frozen=True, slots=True)
class Changes:
    """Overrides, read: values of axes, and raw values of top-level keys with the option they came from."""

    axes: Mapping[Setting[Any], tuple[Any, ...]] = field(default_factory=dict)
    fields: Mapping[str, tuple[Any, str]] = field(default_factory=dict)
    options: Mapping[Setting[Any], str] = field(default_factory=dict)  # of each axis, as `--set pairs=4`
    variant: Variant | None = None  # the second one, of `--against`

    def title(self, given: str, name: str) -> str:
        """Return a run's title: the scenario's, or its name with the changes where other tests are measured."""
        options = [origin for axis, origin in self.options.items() if axis in self.axes]
        options += [origin for key, (_, origin) in self.fields.items() if key in ("pairs", "test")]
        if not options or "title" in self.fields:
            return given or name
        return f"{name} with {named([option.removeprefix('--set ')[:_LONGEST_IN_TITLE] for option in options])}"

    def applied(self, document: Document) -> Document:
        """Return the document with its fields replaced; the schema judges their values and names the option."""
        for key, (value, origin) in self.fields.items():
            document = document.replaced((key,), value, origin)
        return document


def read_overrides(overrides: Overrides) -> tuple[Changes, list[Mistake]]:
    """Return the changes and every mistake in the options; a wrong option changes nothing."""
    axes: dict[Setting[Any], tuple[Any, ...]] = {}
    fields: dict[str, tuple[Any, str]] = {}
    options: dict[Setting[Any], str] = {}
    found: list[Mistake] = []
    if overrides.duration is not None:
        fields["duration"] = (overrides.duration, f"--duration {printable(overrides.duration)}")
    if overrides.repeat is not None:
        fields["repeat"] = (overrides.repeat, f"--repeat {overrides.repeat}")
    if overrides.captures:
        fields["capture"] = (list(overrides.captures), " ".join(f"--capture {number}" for number in overrides.captures))
    for text in overrides.sets:
        origin = f"--set {printable(text)[:200]}"
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            found.append(Mistake(origin, "expected NAME=VALUE, as in --set window=64K,200K."))
        elif name in fields if _is_field(name, value) else SETTINGS.get(name) in axes:
            found.append(Mistake(origin, f'"{name}" is given twice. Give all values at once, as in {name}=V1,V2.'))
        elif name in SETTINGS and not _is_field(name, value):
            axis = SETTINGS[name]
            axes[axis], wrong = _axis_values(axis, value, origin)
            options[axis] = origin
            found += wrong
        elif name in FIELDS:
            fields[name] = (_field_value(name, value), origin)
        else:
            found.append(Mistake(origin, f'unknown name "{printable(name)[:64]}".{_hint(name)}'))
    variant = None if overrides.against is None else read_against(overrides.against)
    if isinstance(variant, Mistake):
        found.append(variant)
        variant = None
    elif variant is not None:
        options.setdefault(variant.axis, variant.option)
    return Changes(axes, fields, options, variant), found


def _is_field(name: str, value: str) -> bool:
    """Return True if `--set` means the key, and not the axis of the same name: only `pairs` is both."""
    return name in FIELDS and (name not in SETTINGS or is_entry(value))


def _axis_values(axis: Setting[Any], text: str, origin: str) -> tuple[tuple[Any, ...], list[Mistake]]:
    values: list[Any] = []
    found: list[Mistake] = []
    for part in text.split(","):
        try:
            if not part.strip():
                raise FieldError(f"{axis.name}: a value is missing, as in {axis.name}={_example(axis)}")
            values += [axis.parse(axis.name, single) for single in spread(axis, part.strip())]
        except ValueError as error:
            message = str(error)
            found.append(Mistake(origin, message if message.endswith((".", "?")) else f"{message}."))
    return tuple(dict.fromkeys(values)), found


def _field_value(name: str, text: str) -> str | list[str] | list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if name == "capture" and parts and all(re.fullmatch(r"[0-9]{1,9}", part, re.ASCII) for part in parts):
        return [int(part) for part in parts]
    return parts if name == "pairs" else text.strip()


def _example(axis: Setting[Any]) -> str:
    return ",".join(
        str(value).lower() if isinstance(value, bool) else str(value) for value in axis.schema["examples"][:2]
    )


def _hint(name: str) -> str:
    if name == "rig":
        return " Use --rig."
    known = list(dict.fromkeys([*SETTINGS, *FIELDS]))
    near = suggestion(name, known)
    return f" Known: {', '.join(known)}." if near.startswith(" Known") else near
