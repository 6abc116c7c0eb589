"""A setting of a test: one record, `Setting`, says all that rigctl knows of it.

The scenario, `--set`, the JSON Schema, the plan, the agent's orders and reports, iperf3's command line, the store,
the columns of exports and reports, mismatches and comparisons all iterate over these records.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from itertools import chain
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from rigctl.settings.kinds import AGENT, IPERF3, Kind
from rigctl.yamlfile.fields import parse_choice, parse_flag, parse_whole

T = TypeVar("T")
DEFAULT: Final = "default"
"""The value with which a scenario leaves a setting to the node."""
Scalar: TypeAlias = int | float | str | bool | None
_MOST: Final = 2**63
_ADDRESS: Final = re.compile(r"[0-9a-f.:]{2,45}", re.ASCII)
_MOST_SUBFLOWS: Final = 16


class Level(IntEnum):
    """The subject of one row."""

    CELLS = 0
    PAIRS = 1
    FLOWS = 2
    INTERVALS = 3
    BINS = 4
    HISTOGRAM = 5


MEASURED: Final = frozenset({Level.CELLS, Level.PAIRS, Level.FLOWS})
ONLY_FLOWS: Final = frozenset({Level.FLOWS})
BUCKETS: Final = frozenset({Level.HISTOGRAM})


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `rigctl.figures.COLUMNS`."""

    name: str
    unit: str  # "" for names and plain counts
    levels: frozenset[Level]
    meaning: str
    digits: int | None = None  # decimals in tables; None: as it is

    @property
    def header(self) -> str:
        """Return the name with its unit, as exports have it."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name


class Ends(Enum):
    """The ends of a flow that get an order, or whose kernel tells what is in effect."""

    SENDER = "sender"
    RECEIVER = "receiver"
    BOTH = "both"

    def has(self, *, sender: bool) -> bool:
        """Tell whether the sender, or the receiver, is one of these ends."""
        return self is not (Ends.RECEIVER if sender else Ends.SENDER)


@dataclass(frozen=True, slots=True)
class Order:
    """A key of the agent's orders `listen` and `connect`, with the bounds of a number."""

    key: str
    ends: Ends = Ends.BOTH
    bounds: tuple[int, int] | None = None
    number: Callable[[Any], int] | None = None  # of a value that the agent takes as a number; None: it takes the value
    of_end: Callable[[Any, bool], Any] | None = None  # of a value the part of the sender (True) or receiver; None: all
    probes: bool = False  # also of the probes of the round trip beside a stream

    def word(self, value: object) -> object:
        """Return a value as the agent takes it."""
        return value if self.number is None else self.number(value)


class Counts(tuple[tuple[int, int], ...]):
    """Values that were seen, each with how often: ((184, 990), (0, 10)). Values and counts are 0 or more."""

    __slots__ = ()

    @classmethod
    def read(cls, value: object) -> "Counts":
        """Return the counts in a value of JSON. Raise `ValueError` if it holds anything but pairs of whole numbers."""
        if not isinstance(value, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
            raise ValueError("pairs of a value and its count")
        if not all(type(number) is int and 0 <= number < _MOST for pair in value for number in pair):
            raise ValueError("whole numbers in pairs of a value and its count")
        return cls((seen, count) for seen, count in value)

    @classmethod
    def sum(cls, several: "Iterable[Counts]") -> "Counts":
        """Return the counts of several flows together."""
        together: dict[int, int] = {}
        for value, count in chain.from_iterable(several):
            together[value] = together.get(value, 0) + count
        return cls(together.items())

    def __str__(self) -> str:
        """Return the values with their shares, the most frequent first: 2: 98 %, 3: 2 %."""
        whole = sum(count for _, count in self)
        often = sorted((each for each in self if each[1]), key=lambda each: (-each[1], each[0]))
        return ", ".join(f"{value}: {100 * count / whole:.0f} %" for value, count in often)

    def by(self, name: Callable[[int], T]) -> dict[T, int]:
        """Return how often each named value was seen, the most frequent first."""
        together = Counter[T]()
        for value, count in self:
            together[name(value)] += count
        return {named: count for named, count in together.most_common() if count}


class Subflows(tuple[tuple[str, str, int, int | None], ...]):
    """The subflows of a connection of Multipath TCP; empty: it fell back to TCP.

    Each has the addresses of sender and receiver, the bytes that its TCP acknowledged (at a sender) or received, and
    the retransmission timeouts in a row at its end: None if it ended before the flow did.
    """

    __slots__ = ()

    @classmethod
    def read(cls, value: object) -> "Subflows":
        """Return the subflows in a value of JSON. Raise `ValueError` if it holds anything else."""
        if not isinstance(value, list) or not all(isinstance(each, list) and len(each) == 4 for each in value):
            raise ValueError("subflows of two addresses and two numbers")
        if len(value) > _MOST_SUBFLOWS:
            raise ValueError(f"at most {_MOST_SUBFLOWS} subflows")
        for *ends, count, timeouts in value:
            if not all(isinstance(end, str) and _ADDRESS.fullmatch(end) for end in ends):
                raise ValueError("addresses of subflows")
            numbers = (count, 0 if timeouts is None else timeouts)
            if not all(type(each) is int and 0 <= each < _MOST for each in numbers):
                raise ValueError("whole numbers in subflows")
        return cls((source, destination, count, timeouts) for source, destination, count, timeouts in value)

    @property
    def used(self) -> int:
        """Return the number of subflows that carried data."""
        return sum(count > 0 for _, _, count, _ in self)


@dataclass(frozen=True)
class Counted:
    """An effective value that is counted: `Counts` of what an end saw, as of the marks of packets that arrived."""

    name: Callable[[int], str]  # a value of the setting, from one that was seen
    share: str  # the column with the share that is as requested, in %
    units: Mapping[str, str]  # what was counted, by the transport of the test
    cause: str  # why it may differ from the request, in a sentence, and what would change it
    remedy: str


@dataclass(frozen=True)
class Effective(Generic[T]):
    """The value that a kernel made of a request, and where it is found.

    `key` is the agent's word for it in a flow's totals; it is stored under the same name. Without a key, or
    with `reported_type`, the value is computed by `of` from what a side tells. `column` of the exports has it.

    With `counted` the key has `Counts`; the value in effect is a text of all values that were seen, the most frequent
    first.
    """

    key: str | None = None
    type: type = int  # of the value of `key`
    ends: Ends = Ends.SENDER
    of: Callable[[Any], T | None] | None = None  # from a `rigctl.records.Side`
    equal: Callable[[T, Any], bool] | None = None  # a request and what is in effect; None: by ==
    column: str | None = None  # None: filled by its own function in rigctl.analysis.rows
    reported_type: Any = None  # type of the value of `key`, where `of` computes the value in effect from it
    columns: tuple[str, ...] = ()  # of `Counts`, in place of `column`: one for the senders, one for the receivers
    counted: Counted | None = None
    in_unit: Callable[[T], Any] | None = None  # the value in the unit of `column`; None: as it is


@dataclass(frozen=True)
class Title(Generic[T]):
    """The column of what was requested, in the tables of reports, and how its values are printed there."""

    text: str
    unit: str = ""
    value: Callable[[T], str] | None = None  # None: a flag as on or off, others by str()


@dataclass(frozen=True, eq=False, kw_only=True)
class Setting(Generic[T]):
    """One setting. `T` is the type of its values, None included where it need not be set."""

    name: str  # in a scenario and in --set
    meaning: str
    header: str  # header of the column in `rigctl plan`
    parse: Callable[[str, object], T]  # takes the name for messages, and a scenario's value; raises FieldError
    text: Callable[[T], str]  # writes a value as a scenario has it
    schema: dict[str, Any]  # JSON Schema of its values
    unset: T  # the value if a scenario does not set one
    default: str = DEFAULT  # text in tables if the setting is unset
    stored: str | None = ""  # its name in stored plans; "": `name`; None: it is not kept in cells
    type: type | tuple[type, ...] = int  # of its values but None
    spans: Literal["sizes", "numbers"] | None = None  # it takes ranges, as 1..12 or 32K..256K times 2
    kinds: tuple[Kind, ...] | None = None  # that take it; None: all
    needed_by: tuple[Kind, ...] = ()  # kinds that have no default for it
    refused: Callable[[T, Kind], str | None] | None = None  # why a kind that takes it does not take a value
    engines: tuple[str, ...] = (AGENT, IPERF3)
    iperf3: Callable[[T], Sequence[str]] | None = None  # words of its command line
    order: Order | None = None
    effective: Effective[T] | None = None
    columns: tuple[Column, ...] = ()  # of the exports
    requested: str | None = None  # the column that has the request
    title: Title[T] | None = None
    phrase: Callable[[T], str] | None = None  # in a sentence: "MSS 1460"
    noun: str = ""  # its name in sentences: "default MSS"; "": `name`
    hint: str = ""  # what to use instead, for kinds that refuse this setting

    def __repr__(self) -> str:
        return self.name.upper()

    @property
    def read_as(self) -> Any:  # noqa: ANN401 — a type
        """Return the type of what an end tells of its effective value: counts, or the value itself."""
        if self.effective is None:
            return None
        return self.effective.reported_type or (Counts if self.effective.counted is not None else self.effective.type)

    @property
    def stored_as(self) -> str | None:
        """Return its name in stored plans, or None if it is not kept in cells."""
        return self.name if self.stored == "" else self.stored

    def takes(self, kind: Kind) -> bool:
        """Tell whether tests of a kind have this setting."""
        return self.kinds is None or kind in self.kinds

    def differs(self, asked: T, side: object, effective: T | None) -> bool:
        """Tell whether a side has another value than the one asked for; an unknown value is no difference."""
        if asked is None or effective is None or self.effective is None:
            return False
        return not (self.effective.equal(asked, side) if self.effective.equal else asked == effective)


class Settings(Mapping[Setting[Any], Any]):
    """Values by setting, immutable; a setting without a value has its `unset` one."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[Any, Any] | Iterable[tuple[Setting[Any], Any]] = ()) -> None:
        self._values = {setting: value for setting, value in dict(values).items() if value != setting.unset}

    def __getitem__(self, setting: Setting[T]) -> T:
        value: T = self._values.get(setting, setting.unset)
        return value

    def __iter__(self) -> Iterator[Setting[Any]]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and self._values == other._values

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __repr__(self) -> str:
        return f"Settings({self._values})"

    def __or__(self, other: Mapping[Any, Any]) -> "Settings":
        return Settings({**self._values, **other})

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> dict[str, object]:
        """Return the schema by which pydantic takes settings as they are."""
        return {"type": "is-instance", "cls": cls}


NO_SETTINGS: Final = Settings()


def or_default(parse: Callable[[str, object], T]) -> Callable[[str, object], T | None]:
    """Return `parse` with `default` for None."""
    return lambda name, value: None if value == DEFAULT else parse(name, value)


def or_dash(text: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return `text` with `default` for None."""
    return lambda value: DEFAULT if value is None else text(value)


def flag_words(value: bool | None) -> str:
    """Return a flag as a scenario has it."""
    return DEFAULT if value is None else "true" if value else "false"


def flag(name: str, **more: Any) -> Setting[bool | None]:  # noqa: ANN401 — fields of Setting
    """Return a setting that is true, false or left to the node."""
    named: dict[str, Any] = {
        "parse": or_default(parse_flag),
        "text": flag_words,
        "schema": {"anyOf": [{"type": "boolean"}, {"const": DEFAULT}], "examples": [True, False]},
        "unset": None,
        "type": bool,
        "phrase": lambda on: name if on else f"no {name}",
    }
    return Setting(name=name, **named | more)


def whole(name: str, low: int, high: int, example: int, **more: Any) -> Setting[int | None]:  # noqa: ANN401
    """Return a setting that is a whole number within bounds, or left to the node."""
    named: dict[str, Any] = {
        "parse": or_default(lambda key, value: parse_whole(key, value, low, high, example)),
        "text": or_dash(str),
        "schema": {
            "anyOf": [{"type": "integer", "minimum": low, "maximum": high}, {"const": DEFAULT}],
            "examples": [example],
        },
        "unset": None,
    }
    return Setting(name=name, **named | more)


def choice(name: str, words: Sequence[str], **more: Any) -> Setting[Any]:  # noqa: ANN401 — fields of Setting
    """Return a setting that is one of a few words."""
    named: dict[str, Any] = {
        "parse": lambda key, value: parse_choice(key, value, words),
        "text": or_dash(str),
        "schema": {"enum": list(words), "examples": [words[-1]]},
        "unset": None,
        "type": str,
    }
    return Setting(name=name, **named | more)


def as_column(name: str, unit: str, meaning: str, digits: int | None = None) -> Column:
    """Return a column of the levels cells, pairs and flows."""
    return Column(name, unit, MEASURED, meaning, digits)
