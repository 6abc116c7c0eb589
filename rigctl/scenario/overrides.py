"""Changes to a scenario by the command line: `--set`, `--duration`, `--repeat`, `--capture`, `--rig` and `--against`.

`--against AXIS=VALUE` measures every test also with another value of one setting, and compares both variants.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rigctl.base.errors import join_names
from rigctl.base.texts import printable
from rigctl.model.statistics.comparing import LEAST_REPETITIONS
from rigctl.records import Against
from rigctl.scenario.classes import Test
from rigctl.scenario.matrix import AxisMatrix, expand_matrix, expand_range, with_axis
from rigctl.scenario.pairs import PairSet, is_entry
from rigctl.settings import SETTINGS, Setting, Settings
from rigctl.yamlfile import FieldError, Mistake, MistakesError, Path, YamlDocument, did_you_mean, suggestion

FIELDS: Final = (
    "title", "notes", "test", "pairs", "duration", "omit", "repeat", "retest", "until",
    "bins", "max_skew", "max_loss", "max_latency", "folder", "capture",
)  # fmt: skip
"""Top-level keys that `--set` takes in addition to axes: all keys that are not sections or rows."""

_LONGEST_IN_TITLE: Final = 60  # most characters of an option in the title of a run
_OPTIONS: Final = {
    "rig": "--rig",
    "duration": "--duration",
    "repeat": "--repeat",
    "against": "--against",
    "captures": "--capture",
    "rig_sets": "--rig-set",
    "sets": "--set",
}
"""Maps fields of `Overrides` to options, in the order in which runs store them."""


@dataclass(frozen=True, slots=True)
class Overrides:
    """The options of the command line, unparsed. `sets` has the text after each `--set`, such as `window=64K,200K`."""

    rig: str | None = None
    sets: tuple[str, ...] = ()
    duration: str | None = None
    repeat: int | None = None
    rig_sets: tuple[str, ...] = ()  # the text after each `--rig-set`, such as `trunk.rate=10G`
    captures: tuple[int, ...] = ()  # the number after each `--capture`
    against: str | None = None  # the text after `--against`, such as `congestion=bbr`

    def as_given(self) -> tuple[str, ...]:
        """Return a text for each option, such as `--set window=64K`; runs store these texts."""
        texts: list[str] = []
        for name, option in _OPTIONS.items():
            value = getattr(self, name)
            values = value if isinstance(value, tuple) else () if value is None else (value,)
            texts += (f"{option} {each}" for each in values)
        return tuple(texts)

    @classmethod
    def from_given(cls, texts: Sequence[str]) -> "Overrides":
        """Return the options from the texts that `as_given` returned."""
        given: dict[str, Any] = {}
        for name, option in _OPTIONS.items():
            values = [text.removeprefix(f"{option} ") for text in texts if text.startswith(f"{option} ")]
            read = tuple(map(int, values)) if name in ("repeat", "captures") else tuple(values)
            if read:
                given[name] = read if name in ("sets", "rig_sets", "captures") else read[0]
        return cls(**given)


@dataclass(frozen=True, slots=True)
class Variant:
    """The second variant of a comparison: the axis that differs, its value, and the text of the option."""

    axis: Setting[Any]
    value: Any
    option: str

    def refused(self, what: str) -> MistakesError:
        """Return an error that refuses the option, with the message `what`."""
        return MistakesError([Mistake(self.option, what)])


@dataclass(frozen=True, slots=True)
class Changes:
    """Parsed options: values of axes, and unchecked values of top-level keys, each with the option that set it."""

    axes: Mapping[Setting[Any], tuple[Any, ...]] = field(default_factory=dict)
    fields: Mapping[str, tuple[Any, str]] = field(default_factory=dict)
    options: Mapping[Setting[Any], str] = field(default_factory=dict)  # maps an axis to its option: `--set pairs=4`
    variant: Variant | None = None  # second variant, if `--against` is given

    def title(self, given: str, name: str) -> str:
        """Return the title of a run: the scenario's title, or its name with the options that change its tests."""
        options = [origin for axis, origin in self.options.items() if axis in self.axes]
        options += [origin for key, (_, origin) in self.fields.items() if key in ("pairs", "test")]
        if not options or "title" in self.fields:
            return given or name
        return f"{name} with {join_names([option.removeprefix('--set ')[:_LONGEST_IN_TITLE] for option in options])}"

    def applied(self, document: YamlDocument) -> YamlDocument:
        """Return the document with fields replaced. The schema checks their values; its mistakes name the option."""
        for key, (value, origin) in self.fields.items():
            document = document.replaced((key,), value, origin)
        return document

    def located(self, document: YamlDocument) -> YamlDocument:
        """Return the document, set up so that mistakes in an axis name the option that set the axis."""
        origins: dict[Path, str] = {("matrix", axis.name): option for axis, option in self.options.items()}
        return replace(document, origins={**document.origins, **origins})


def read_overrides(overrides: Overrides) -> tuple[Changes, list[Mistake]]:
    """Return the changes of all valid options, and the mistakes in the other options."""
    axes: dict[Setting[Any], tuple[Any, ...]] = {}
    fields: dict[str, tuple[Any, str]] = {}
    options: dict[Setting[Any], str] = {}
    wrong: list[Mistake] = []
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
            wrong.append(Mistake(origin, "expected NAME=VALUE, as in --set window=64K,200K."))
        elif name == "pairs" and value.endswith("-"):
            what = 'the shell took ">" and made a file. Give --set pairs=pi1:pi2, or quote it: --set "pairs=pi1->pi2".'
            wrong.append(Mistake(origin, what))
        elif name in fields if _is_field(name, value) else SETTINGS.get(name) in axes:
            wrong.append(Mistake(origin, f'"{name}" is given twice. Give all values at once, as in {name}=V1,V2.'))
        elif name in SETTINGS and not _is_field(name, value):
            axis = SETTINGS[name]
            axes[axis], wrong_values = _axis_values(axis, value, origin)
            options[axis] = origin
            wrong += wrong_values
        elif name in FIELDS:
            fields[name] = (_field_value(name, value), origin)
        else:
            wrong.append(Mistake(origin, f'unknown name "{printable(name)[:64]}".{_hint(name)}'))
    variant = None if overrides.against is None else _read_against(overrides.against)
    if isinstance(variant, Mistake):
        wrong.append(variant)
        variant = None
    elif variant is not None:
        options.setdefault(variant.axis, variant.option)
    return Changes(axes, fields, options, variant), wrong


def _is_field(name: str, value: str) -> bool:
    """Tell whether `--set NAME=VALUE` sets a top-level key, not an axis. `pairs` is the name of both."""
    return name in FIELDS and (name not in SETTINGS or is_entry(value) or ":" in value)


def _axis_values(axis: Setting[Any], text: str, origin: str) -> tuple[tuple[Any, ...], list[Mistake]]:
    values: list[Any] = []
    wrong: list[Mistake] = []
    for part in text.split(","):
        try:
            if not part.strip():
                raise FieldError(f"{axis.name}: a value is missing, as in {axis.name}={_example(axis)}")
            values += [axis.parse(axis.name, single) for single in expand_range(axis, part.strip())]
        except ValueError as error:
            wrong.append(Mistake(origin, str(error) if str(error).endswith((".", "?")) else f"{error}."))
    return tuple(dict.fromkeys(values)), wrong


def _field_value(name: str, text: str) -> str | list[str] | list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if name == "capture" and parts and all(re.fullmatch(r"[0-9]{1,9}", part, re.ASCII) for part in parts):
        return [int(part) for part in parts]
    if name == "pairs":  # in a shell, pi1:pi2 needs no quotes but -> does
        return [part if is_entry(part) else part.replace(":", "->", 1) for part in parts]
    return text.strip()


def _example(axis: Setting[Any]) -> str:
    return ",".join(
        str(value).lower() if isinstance(value, bool) else str(value) for value in axis.schema["examples"][:2]
    )


def _hint(name: str) -> str:
    if name == "rig":
        return " Use --rig."
    known = list(dict.fromkeys([*SETTINGS, *FIELDS]))
    return did_you_mean(name, known) or f" Known: {', '.join(known)}."


def _read_against(text: str) -> Variant | Mistake:
    option = f"--against {printable(text)[:200]}"
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (equals and name and value) or "," in value:
        return Mistake(option, "expected AXIS=VALUE, as in --against congestion=bbr.")
    if name not in SETTINGS:
        return Mistake(option, f'unknown axis "{printable(name)[:64]}".{suggestion(name, list(SETTINGS))}')
    try:
        return Variant(SETTINGS[name], SETTINGS[name].parse(name, value), option)
    except ValueError as error:
        return Mistake(option, f"{str(error).rstrip('.')}.")


def with_variant(matrix: AxisMatrix, variant: Variant) -> tuple[AxisMatrix, Any]:
    """Return `matrix` with both values of the axis, and the first variant's value. Raise `MistakesError`."""
    axis = variant.axis
    others = list(dict.fromkeys(row[axis] for row in expand_matrix(matrix) if row[axis] != variant.value))
    if len(others) == 1:
        return with_axis(matrix, axis, (others[0], variant.value)), others[0]
    if not others:
        given = value_text(axis, variant.value)
        raise variant.refused(f"every test has {axis.name} {given} already. Name another value.")
    texts = [value_text(axis, value) for value in others]
    what = f"the scenario has {len(others)} other values of {axis.name}: {', '.join(texts[:5])}. Compare with one"
    raise variant.refused(f"{what}: --set {axis.name}={texts[0]}.")


def against_of(tests: Sequence[Test], variant: Variant, before: object, repeat: int) -> Against:
    """Return the comparison of those tests that differ only in the axis of `variant`. Raise `MistakesError`."""
    axis = variant.axis

    def without_axis(test: Test) -> tuple[Settings, PairSet]:
        return test.row | {axis: axis.unset}, test.pairs

    firsts = {without_axis(test): test.number for test in tests if test.row[axis] == before}
    twins = [
        (firsts[without_axis(test)], test.number)
        for test in tests
        if test.row[axis] == variant.value and without_axis(test) in firsts
    ]
    if not twins:
        raise variant.refused("no test can have both values: a row of exclude or include names them.")
    if repeat < LEAST_REPETITIONS:
        what = f"a comparison needs {LEAST_REPETITIONS} repetitions or more, the scenario has {repeat}."
        raise variant.refused(f"{what} Give --repeat {LEAST_REPETITIONS} or more.")
    return Against(axis.name, value_text(axis, before), value_text(axis, variant.value), tuple(sorted(twins)))


def value_text(axis: Setting[Any], value: object) -> str:
    """Return a value of an axis as written in a scenario."""
    return axis.default if value is None else axis.text(value)
