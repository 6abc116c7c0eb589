"""The keys of a scenario file, their types, and descriptions for editors.

This schema checks single keys. `mistakes` checks conflicts with other keys or with the rig.
"""

import math
import re
import sys
import warnings
from collections.abc import Collection
from functools import partial
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainValidator,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    create_model,
)

from rigctl.base.units import parse_duration
from rigctl.conditions.condition import ConditionName, ConditionSection
from rigctl.records import LEAST_SKEW_S, MAX_LOSS
from rigctl.scenario.classes import AXES, CLASS_NAME, TAKEN, Moment, parse_class, parse_moment
from rigctl.scenario.expectations import expect_section
from rigctl.scenario.matrix import AT_TOP, MAX_CELLS, RowValues, parse_axis
from rigctl.scenario.pairs import PAIR_SCHEMA, PairEntry, Rounds, parse_entry
from rigctl.settings import SETTINGS, Setting
from rigctl.settings.kinds import KINDS
from rigctl.yamlfile import FieldError, YamlSection
from rigctl.yamlfile.fields import (
    LongText,
    Text,
    as_list,
    empty_if_none,
    parse_between,
    parse_flag,
    parse_text,
    parse_whole,
    parse_word,
    show_value,
    validator_for,
    whole_within,
)

_MIN_DURATION_S: Final = 0.1
MAX_DURATION_S: Final = 86_400.0  # the same limit as that of iperf3 -t
_MAX_REPEAT: Final = 1000
_TEST_FOLDER: Final = "/var/tmp"  # noqa: S108 — on a disk, unlike /tmp; safe, because of O_TMPFILE
_MOST_FOLDER: Final = 255
_FOLDER: Final = r"^(/|[A-Za-z]:[\\/])"  # of Linux and FreeBSD, or of Windows
_MOST_HEAD: Final = 40  # most characters of a title in `heads`
_LATENCIES_S: Final = (parse_duration("10us"), 60.0)
_MIN_BIN_S: Final = 0.0001
_MAX_BIN_S: Final = 1.0
MOST_BINS: Final = 4_000_000  # of a test, over all its flows
_TEST: Final = validator_for(lambda name, value: parse_word(name, value, KINDS))
_EMPTY_LIST: Final = BeforeValidator(lambda value: [] if value is None else value)
_DURATION_SCHEMA: Final = {
    "anyOf": [
        {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*(us|ms|s|m|min|h)?\s*$"},
        {"type": "number", "minimum": 0},
    ]
}


def _seconds(low: float, high: float, expected: str, example: str) -> tuple[PlainValidator, WithJsonSchema]:
    read = validator_for(lambda name, value: parse_between(name, value, parse_duration, (low, high), expected, example))
    return read, WithJsonSchema(_DURATION_SCHEMA)


def _bins(name: str, value: object) -> float | None:
    bounds = (_MIN_BIN_S, _MAX_BIN_S)
    return None if value is None else parse_between(name, value, parse_duration, bounds, "0.1 ms to 1 s", "0.5ms")


def _max_latency(name: str, value: object) -> float | None:
    return None if value is None else parse_between(name, value, parse_duration, _LATENCIES_S, "10 us to 1 min", "2ms")


def _pair_list(value: object) -> list[object]:
    if value == []:
        raise FieldError("pairs: the list is empty. Name at least one, as in pi1 -> pi2")
    return as_list(value)


def _condition_sections(value: object) -> object:
    if value == {}:
        raise FieldError("conditions: is empty. Name one, as in mtu1500: {mtu: 1500}, or leave it out")
    return empty_if_none(value)


def _capture(name: str, value: object) -> bool | tuple[int, ...]:
    if isinstance(value, list):
        return tuple(parse_whole(name, number, 1, MAX_CELLS, 3) for number in value)
    try:
        return parse_flag(name, value)
    except FieldError:
        raise FieldError(
            f"{name} {show_value(value)}: expected true, false or numbers of tests, as in [1, 3]"
        ) from None


def _folder(name: str, value: object) -> str:
    # `parse_text` would refuse a path of more than 200 characters.
    text = value.strip() if isinstance(value, str) and value.strip() else ""
    text = text or parse_text(name, value, "a folder, as in /var/tmp")
    if not re.match(_FOLDER, text) or not text.isprintable() or len(text.encode()) > _MOST_FOLDER:
        raise FieldError(
            f"{name} {show_value(text)}: expected an absolute path of at most {_MOST_FOLDER} bytes, as in /var/tmp "
            "or C:\\Temp"
        )
    return text


def _head(name: str, value: object) -> str:
    text = parse_text(name, value, "titles of columns, as in {RTT mean: RTT}")
    if len(text) > _MOST_HEAD:
        raise FieldError(
            f"{name} {show_value(text)}: expected at most {_MOST_HEAD} characters, as in {{RTT mean: RTT}}"
        )
    return text


def _share(before: str, expected: str, *, zero: bool = False) -> PlainValidator:
    """Return a validator that reads a percentage, after the pattern `before`, as a share. `zero` allows 0 %."""

    def parse(name: str, value: object) -> float:
        match = re.fullmatch(rf"\s*{before}\s*(\d+(?:\.\d+)?)\s*%\s*", value) if isinstance(value, str) else None
        if match is None or float(match[1]) >= 100 or (float(match[1]) == 0 and not zero):
            raise FieldError(f"{name} {show_value(value)}: expected {expected}")
        return float(match[1]) / 100

    return validator_for(parse)


_Head: TypeAlias = Annotated[
    str, validator_for(_head), WithJsonSchema({"type": "string", "minLength": 1, "maxLength": _MOST_HEAD})
]
_Heads: TypeAlias = Annotated[dict[_Head, _Head], BeforeValidator(empty_if_none)]


def _accept_one_or_many(schema: dict[str, Any]) -> None:
    array = {"type": schema.pop("type"), "items": schema.pop("items"), "minItems": 1}
    schema["anyOf"] = [array["items"], array]


_Keys = TypeVar("_Keys", bound=BaseModel)
_SOME: Final = {"type": "array", "minItems": 1}


def _one_value(axis: Setting[Any], name: str, value: object) -> object:
    """Return the parsed value of an axis. If the value is a list, the error's message points to `matrix`."""
    try:
        return axis.parse(name, value)
    except FieldError as error:
        if not isinstance(value, list):
            raise
        raise FieldError(f"{error}. Give several values under matrix") from error


def _axes_model(title: str, doc: str, base: type[_Keys], names: Collection[str], *, many: bool) -> type[_Keys]:
    """Return a model with the keys of `base` and a key for each axis, which has one value or, with `many`, several."""
    fields: dict[str, Any] = {}
    for axis in map(SETTINGS.__getitem__, names):
        schema = axis.schema if not many else {"anyOf": [axis.schema, {**_SOME, "items": axis.schema}]}
        read = PlainValidator(partial(parse_axis, axis)) if many else validator_for(partial(_one_value, axis))
        fields[axis.name] = (Annotated[Any, read, WithJsonSchema(schema)], Field(None, description=axis.meaning))
    return _model(title, doc, base, fields)


def _model(title: str, doc: str, base: type[_Keys], fields: dict[str, Any]) -> type[_Keys]:
    """Return a model with the keys of `base` and `fields`."""
    with warnings.catch_warnings():
        # The axis `copy` hides pydantic's deprecated method `copy`, which rigctl does not call.
        warnings.filterwarnings("ignore", message='Field name "copy"')
        return create_model(title, __base__=base, __doc__=doc, **fields)


def _by_setting(value: Any, handler: ValidatorFunctionWrapHandler) -> RowValues:  # noqa: ANN401 — any YAML value
    """Return the settings of a section with their values, in the order of the file."""
    section = handler(value)
    return {SETTINGS[name]: getattr(section, name) for name in value}


def _row(value: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> RowValues:
    if value == {}:
        raise FieldError(f"{info.field_name}: a row that names no axis. Name one, as in window: 64K")
    return _by_setting(value, handler)


MatrixSection = _axes_model(
    "Matrix",
    "Axes (settings that vary) and their values: each combination is a test; the first axis changes slowest.",
    YamlSection,
    SETTINGS,
    many=True,
)
RowSection = _axes_model("Row", "A row: one value for each axis that it names.", YamlSection, SETTINGS, many=False)
_Axes = Annotated[MatrixSection, WrapValidator(_by_setting), BeforeValidator(empty_if_none)]  # type: ignore[valid-type]
_Row = Annotated[RowSection, WrapValidator(_row)]  # type: ignore[valid-type]
ClassName = Annotated[
    str, validator_for(parse_class), WithJsonSchema({"type": "string", "pattern": f"^{CLASS_NAME.pattern}$"})
]


_Entry = Annotated[PairEntry | Rounds, validator_for(parse_entry), WithJsonSchema(PAIR_SCHEMA)]


_Moment = Annotated[
    Moment | None,
    validator_for(parse_moment),
    WithJsonSchema(
        {"anyOf": [*_DURATION_SCHEMA["anyOf"], {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*%\s*$"}]}
    ),
]


class ClassKeys(YamlSection):
    """Keys of a traffic class, except settings."""

    pairs: Annotated[tuple[_Entry, ...], BeforeValidator(_pair_list)] = Field(
        (),
        description="Pairs of this class, all at once, as under pairs of the scenario. Default: the pairs of the row.",
        examples=[["a -> b"], "n[2..5] x n1", {"star": "a"}],
        json_schema_extra=_accept_one_or_many,
    )
    start: _Moment = Field(
        None,
        description="When the class starts to send: a time after the start of the test, or a share of its duration. "
        "Default: 0s.",
        examples=["5s", "25%"],
    )
    stop: _Moment = Field(
        None,
        description="When the class stops, likewise. Default: at the end of the test.",
        examples=["15s", "75%"],
    )

    test: Annotated[str | None, _TEST, WithJsonSchema({"enum": [kind.name for kind in TAKEN]})] = Field(
        None, description="Kind of test. Default: the scenario's kind of test.", examples=["udp"]
    )


ClassSection = _axes_model("Class", "A traffic class: its kind of test, and its settings.", ClassKeys, AXES, many=False)
_OF_CLASS: Final[dict[str, Any]] = {
    "class": (ClassName | None, Field(None, description="Only tests of this class.", examples=["voice"]))
}
ExpectSection = expect_section(create_model("Where", __base__=RowSection, **_OF_CLASS))


def _text_is_when(value: object) -> object:
    return {"when": value} if isinstance(value, str) else value


_More = Annotated[int, *whole_within(2, _MAX_REPEAT, 15)]


class RetestSection(YamlSection):
    """Tests whose repetitions vary too much are measured again."""

    when: Annotated[float, _share(r"variation\s*>", '"variation > 5%", between 0 and 100 %')] = Field(
        description="Least variation for a retest: mean absolute deviation, as a share of the mean.",
        examples=["variation > 5%"],
    )
    repeat: _More = Field(15, description="Number of additional repetitions.")


class UntilSection(YamlSection):
    """Tests are measured until the confidence interval of their mean is small enough."""

    when: Annotated[float, _share(r"ci95\s*<", '"ci95 < 1%", between 0 and 100 %')] = Field(
        description="Largest half-width of the mean's 95 % confidence interval ÷ mean.", examples=["ci95 < 1%"]
    )
    most: _More = Field(50, description="Most repetitions of a test.")


_WITH_PAIRS: Final[list[JsonValue]] = [{"required": ["pairs"]}, {"required": ["classes"]}]


class _PartKeys(YamlSection):
    model_config = ConfigDict(json_schema_extra={"anyOf": _WITH_PAIRS})


class ScenarioKeys(YamlSection):
    """Keys of a scenario, except settings."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [*_WITH_PAIRS, {"required": ["parts"]}]})

    title: Text = Field("", description="Title in tables and pages, one line. Default: the file's name.")
    notes: LongText = Field("", description="Notes for readers of the report.")
    heads: _Heads = Field(
        default_factory=dict,
        description="Other titles for columns of the results table, such as those of a published page.",
        examples=[{"RTT mean": "RTT"}],
    )
    rig: Text = Field(
        "",
        description="The default rig: a path relative to this file, or the name of a bundled rig.",
        examples=["gigablox", "./my-rig.yaml"],
    )
    pairs: Annotated[tuple[_Entry, ...], BeforeValidator(_pair_list)] = Field(
        (),
        description="pairs of nodes that send, all at once, as in pairs: [pi1 -> pi2]. With groups or ranges: "
        "left -> right is first to first and so on, left x right is each to each other. Not at once: mesh (every node "
        "to every other), mesh-parallel (in rounds of disjoint pairs), {star: NODE} (NODE to each other node and "
        "back).",
        examples=[["pi1 -> pi2", "pi3 -> pi4"], ["node[001..012] -> node[101..112]"], ["left x right"], "mesh"],
        json_schema_extra=_accept_one_or_many,
    )
    conditions: Annotated[
        dict[ConditionName, Annotated[ConditionSection, BeforeValidator(empty_if_none)]],
        BeforeValidator(_condition_sections),
    ] = Field(default_factory=dict, description="Named sets of host settings; every test is measured under each.")
    classes: Annotated[
        dict[ClassName, Annotated[ClassSection, BeforeValidator(empty_if_none)]],  # type: ignore[valid-type]
        BeforeValidator(empty_if_none),
    ] = Field(
        default_factory=dict,
        description="Classes of traffic that run together, in each pair or each in pairs of its own; each test becomes "
        "one test for each class.",
        examples=[
            {"voice": {"test": "udp", "rate": "2M"}, "bulk": {"parallel": 4}},
            {"victim": {"pairs": ["a -> b"]}, "load": {"pairs": ["c -> b"], "start": "5s", "stop": "15s"}},
        ],
    )
    matrix: _Axes = Field(default_factory=dict, description="Axes and their values: every combination is one test.")
    exclude: Annotated[tuple[_Row, ...], _EMPTY_LIST] = Field(
        (), description="Combinations to leave out: tests with all the values of a row are not measured."
    )
    include: Annotated[tuple[_Row, ...], _EMPTY_LIST] = Field(
        (), description="Additional tests, measured after the tests of the matrix, in this order."
    )
    duration: Annotated[float, *_seconds(_MIN_DURATION_S, MAX_DURATION_S, "100 ms to 24 h", "10s")] = Field(
        10.0, description="How long each test sends, 100ms to 24h.", examples=["10s", "60s"]
    )
    omit: Annotated[float, *_seconds(0.0, math.inf, "0 s or more", "2s")] = Field(
        0.0, description="Time at the start of the duration whose traffic is not counted.", examples=["2s"]
    )
    max_skew: Annotated[float | None, *_seconds(sys.float_info.min, math.inf, "more than 0", "10ms")] = Field(
        None,
        description="A repetition whose flows start further apart than this is invalid, and measured once more. "
        f"Default: 1 % of the duration, at least {1000 * LEAST_SKEW_S:g}ms.",
        examples=["10ms"],
    )
    repeat: Annotated[int | None, *whole_within(1, _MAX_REPEAT, 3)] = Field(
        None, description="How often each test is measured. Default: once; twice with retest or until.", examples=[3, 5]
    )
    retest: Annotated[
        RetestSection | None,
        BeforeValidator(_text_is_when),
        WithJsonSchema({"anyOf": [{"type": "string", "pattern": "^ *variation *>"}, {"type": "object"}]}),
    ] = Field(None, description="Tests whose repetitions vary too much are measured again, for a table of their own.")
    until: Annotated[
        UntilSection | None,
        BeforeValidator(_text_is_when),
        WithJsonSchema({"anyOf": [{"type": "string", "pattern": "^ *ci95 *<"}, {"type": "object"}]}),
    ] = Field(None, description="Tests are measured until the confidence interval of their mean is small enough.")
    test: Annotated[str, _TEST, WithJsonSchema({"enum": list(KINDS)})] = Field(
        "tcp",
        description="What is measured: tcp or udp (goodput), pingpong or blast (messages), file (a transfer), "
        "connect (connections), requests (their time at a given rate) or burst (the buffer of a port).",
        examples=["tcp"],
    )
    bins: Annotated[float | None, validator_for(_bins), WithJsonSchema(_DURATION_SCHEMA)] = Field(
        None,
        description="Width of bins, 0.1ms to 1s, for throughput over time and gaps; for tests tcp, udp and file.",
        examples=["0.5ms"],
    )
    folder: Annotated[str, validator_for(_folder), WithJsonSchema({"type": "string", "pattern": _FOLDER})] = Field(
        _TEST_FOLDER,
        description="Test file: folder on each node's disk for files, which rigctl removes.",
        examples=[_TEST_FOLDER],
    )
    capture: Annotated[
        bool | tuple[int, ...],
        validator_for(_capture),
        WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "array", "items": {"type": "integer", "minimum": 1}}]}),
    ] = Field(
        False,
        description="Capture the frame headers of all tests, or of the tests with these numbers, in pcap files.",
        examples=[True, [1, 3]],
    )
    max_loss: Annotated[
        float,
        _share("", "a share below 100 %, as in 0.1%", zero=True),
        WithJsonSchema({"type": "string", "pattern": r"^ *[0-9]+(\.[0-9]+)? *% *$"}),
    ] = Field(MAX_LOSS, description="Search (rate: max): highest loss at which a rate passes.", examples=["0.1%"])
    max_latency: Annotated[float | None, validator_for(_max_latency), WithJsonSchema(_DURATION_SCHEMA)] = Field(
        None,
        description="Search (per_second: max): longest 99th percentile of the times of requests at which a rate "
        "passes, 10us to 1min.",
        examples=["2ms"],
    )
    expect: Annotated[
        tuple[ExpectSection, ...],  # type: ignore[valid-type]
        _EMPTY_LIST,
    ] = Field(
        (),
        description="Expected results of all tests or of some. Expectations that are not met are reported, with exit "
        "code 1.",
        examples=[{"efficiency": ">= 0.97"}, [{"where": {"window": "64K"}, "goodput": ">= 930M per pair"}]],
        json_schema_extra=_accept_one_or_many,
    )

    @property
    def repetitions(self) -> int:
        """Return how often to measure a test at first: `repeat`, else 1, or 2 if `retest` or `until` can add more."""
        return self.repeat if self.repeat is not None else 1 if self.retest is None and self.until is None else 2

    @property
    def max_skew_s(self) -> float:
        """Return the largest start skew of a valid repetition in s."""
        return max(LEAST_SKEW_S, self.duration / 100) if self.max_skew is None else self.max_skew

    @property
    def settings(self) -> RowValues:
        """Return the settings at the top of the scenario, which apply to all tests."""
        return {SETTINGS[name]: getattr(self, name) for name in AT_TOP if name in self.model_fields_set}


_Single: Final = _axes_model(
    "Single", "A scenario without parts: what to measure between which nodes.", ScenarioKeys, AT_TOP, many=False
)
OF_PART: Final = frozenset(
    ("test", "pairs", "classes", "matrix", "exclude", "include", "duration", "omit", "bins", "expect", *AT_TOP)
)
"""The keys of a part: they say what is measured. `duration` may also stand at the top, for all parts."""
_PartSection: Final = _model(
    "Part",
    "A part of a scenario: one thing to measure.",
    _PartKeys,
    {name: (field.annotation, field) for name, field in _Single.model_fields.items() if name in OF_PART},
)
_PARTS: Final[Any] = Field(
    default_factory=dict,
    description="Several things to measure in one run, one after the other, each with the keys that say what is "
    "measured. What stands at the top then holds for all parts.",
    examples=[{"small": {"test": "udp", "pairs": ["a -> b"], "size": 64, "rate": "max"}}],
)
ScenarioFile: Final = _model(
    "ScenarioFile",
    "A scenario: what to measure between which nodes.",
    _Single,
    {"parts": (dict[ClassName, _PartSection], _PARTS)},  # type: ignore[valid-type]
)
OF_RUN: Final = frozenset(ScenarioFile.model_fields) - OF_PART
"""The keys that stand at the top of a scenario with parts, and hold for the whole run."""
