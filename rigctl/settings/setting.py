"""Define `Setting`: one record declares all that rigctl knows about a setting of tests.

The scenario, `--set`, the JSON Schema, the plan, the agent's orders and reports, iperf3's command line, the store, the
columns of exports and reports, mismatches and comparisons iterate over these records.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from itertools import chain
from typing import Any, Final, Generic, Literal, TypeVar

from rigctl.settings.kinds import AGENT, IPERF3, Kind
from rigctl.yamlfile.fields import parse_choice, parse_flag, parse_whole

_T = TypeVar("_T")
DEFAULT: Final = "default"  # value of a setting in a scenario that requests the default of the node
MAX: Final = "max"  # value of a setting whose highest passing value is searched for (rigctl.model.trials)
RANGE_SCHEMA: Final = {"type": "string", "pattern": r"^\s*[0-9]+\s*\.\.\s*[0-9]+(\s+(step|times)\s+[0-9]+)?\s*$"}
_MOST: Final = 2**63
_ADDRESS: Final = re.compile(r"[0-9a-f.:]{2,45}", re.ASCII)
_MOST_SUBFLOWS: Final = 16


class Level(IntEnum):
    """The kinds of rows in exports: a row is for a test, pair, flow, interval, bin, bucket, or a phase of a pair."""

    CELLS = 0
    PAIRS = 1
    FLOWS = 2
    INTERVALS = 3
    BINS = 4
    HISTOGRAM = 5
    PHASES = 6


MEASURED: Final = frozenset({Level.CELLS, Level.PAIRS, Level.FLOWS})
ONLY_FLOWS: Final = frozenset({Level.FLOWS})
BUCKETS: Final = frozenset({Level.HISTOGRAM})
PHASED: Final = frozenset({Level.PHASES})


@dataclass(frozen=True, slots=True)
class DataColumn:
    """A column of exports (`rigctl.figures.COLUMNS`)."""

    name: str
    unit: str  # empty for names and counts
    levels: frozenset[Level]
    meaning: str
    digits: int | None = None  # number of decimals in tables; None for texts and whole numbers

    @property
    def header(self) -> str:
        """Return the name of the column with its unit, as in exports."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name


class Ends(Enum):
    """Ends of a flow (sender, receiver or both) that an order sends the setting to, or that report the value."""

    SENDER = "sender"
    RECEIVER = "receiver"
    BOTH = "both"

    def has(self, *, sender: bool) -> bool:
        """Tell whether this value includes the sender (if `sender` is true) or the receiver (if false)."""
        return self is not (Ends.RECEIVER if sender else Ends.SENDER)


@dataclass(frozen=True, slots=True)
class OrderKey:
    """How a setting is sent to agents: a key of the orders `listen` and `connect`, and a number's least and most."""

    key: str
    ends: Ends = Ends.BOTH
    bounds: tuple[int, int] | None = None
    number: Callable[[Any], int] | None = None  # converts the value to a number for the agent; None: sent unchanged
    of_end: Callable[[Any, bool], Any] | None = None  # returns the sender's (True) or receiver's part of a value
    probes: bool = False  # True if the key is also sent for probes of the round-trip time

    def word(self, value: object) -> object:
        """Return a value of the setting in the form of the agent's orders."""
        return value if self.number is None else self.number(value)


class Counts(tuple[tuple[int, int], ...]):
    """How often values were seen, as (value, count): ((184, 990), (0, 10)). Values and counts are 0 or more."""

    __slots__ = ()

    @classmethod
    def read(cls, value: object) -> "Counts":
        """Return the counts in a JSON value. Raise `ValueError` unless it has only pairs of whole numbers."""
        if not isinstance(value, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
            raise ValueError("pairs of a value and its count")
        if not all(type(number) is int and 0 <= number < _MOST for pair in value for number in pair):
            raise ValueError("whole numbers in pairs of a value and its count")
        return cls((seen, count) for seen, count in value)

    @classmethod
    def sum(cls, several: "Iterable[Counts]") -> "Counts":
        """Return how often each value was seen in all flows together; `several` has one `Counts` per flow."""
        together: dict[int, int] = {}
        for value, count in chain.from_iterable(several):
            together[value] = together.get(value, 0) + count
        return cls(together.items())

    def __str__(self) -> str:
        """Return the values with their shares, the most frequent first: `2: 98 %, 3: 2 %`."""
        whole = sum(count for _, count in self)
        often = sorted((each for each in self if each[1]), key=lambda each: (-each[1], each[0]))
        return ", ".join(f"{value}: {100 * count / whole:.0f} %" for value, count in often)

    def by(self, name: Callable[[int], _T]) -> dict[_T, int]:
        """Map each value's name, `name(value)`, to how often the value was seen; the most frequent first."""
        together = Counter[_T]()
        for value, count in self:
            together[name(value)] += count
        return {named: count for named, count in together.most_common() if count}


class Subflows(tuple[tuple[str, str, int, int | None], ...]):
    """The subflows of a Multipath TCP connection; empty if the connection fell back to TCP.

    A subflow has the addresses of sender and receiver, the bytes acknowledged (at a sender) or received, and the number
    of successive retransmission timeouts at the end of the flow (None if the subflow ended before).
    """

    __slots__ = ()

    @classmethod
    def read(cls, value: object) -> "Subflows":
        """Return the subflows from a JSON value. Raise `ValueError` for any other value."""
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


def default_or(text: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return a function that writes None as `default`, and other values with `text`."""
    return lambda value: DEFAULT if value is None else text(value)


def value_words(value: object) -> str:
    """Return a value as written in a scenario, `default` for None."""
    return DEFAULT if value is None else str(value)


@dataclass(frozen=True)
class CountedValue:
    """How to print an effective value that agents report as `Counts`, such as the DSCP marks of arriving packets."""

    name: Callable[[int], str]  # returns the name of a counted value
    share: str  # name of the column in exports: share of the requested value in all counts, in %
    units: Mapping[str, str]  # maps a transport to a word for what is counted
    cause: str  # why values may differ from the request, as part of a sentence
    remedy: str


@dataclass(frozen=True)
class Effective(Generic[_T]):
    """How rigctl knows the effective value of a setting at a side (sender or receiver) of a flow.

    The agent reports the value under `key`, which the store also uses. Without `key`, or with `reported_type`, the
    function `of` computes the value from the side. `column` is the column in exports.

    With `counted`, the agent reports `Counts` under `key`. The effective value is then a text with all counted values,
    the most frequent first.
    """

    key: str | None = None
    type: type = int  # type of the effective value
    ends: Ends = Ends.SENDER
    of: Callable[[Any], _T | None] | None = None  # computes the value from a side, a `rigctl.records.Side`
    equal: Callable[[_T, Any], bool] | None = None  # tells whether a side has the requested value; None: by ==
    column: str | None = None  # None: rigctl.figures.effective computes the column
    reported_type: Any = None  # type of the reported value, if `of` computes the effective value from it
    columns: tuple[str, ...] = ()  # if `type` is `Counts`: the columns of senders and of receivers
    counted: CountedValue | None = None
    in_unit: Callable[[_T], Any] | None = None  # converts the value to the unit of `column`


@dataclass(frozen=True)
class Title(Generic[_T]):
    """A setting's column in tables of reports: its title, its unit, and how to print requested values."""

    text: str
    unit: str = ""
    value: Callable[[_T], str] | None = None  # None: flags as on or off, other values by str()


@dataclass(frozen=True, eq=False, kw_only=True)
class Setting(Generic[_T]):
    """A setting of tests. `T` is the type of its values, with None if the setting is optional."""

    name: str  # name of the setting in scenarios and --set
    meaning: str
    parse: Callable[[str, object], _T]  # takes (name for messages, value in a scenario); raises FieldError
    schema: dict[str, Any]  # JSON Schema of the values
    unset: _T  # value if a scenario does not name the setting
    text: Callable[[_T], str] = value_words  # returns a value as written in a scenario
    heading: str = ""  # header of the column in `rigctl plan`; "": the name
    default: str = DEFAULT  # text for an unset value in tables
    stored: str | None = ""  # name in stored plans; "": same as `name`; None: stored plans lack it
    type: type | tuple[type, ...] = int  # type of the values other than None
    spans: Literal["sizes", "numbers"] | None = None  # accepts ranges of numbers (1..12) or sizes (32K..256K times 2)
    kinds: tuple[Kind, ...] | None = None  # kinds that take the setting; None: all
    needed_by: tuple[Kind, ...] = ()  # kinds for which a scenario must set a value
    refused: Callable[[_T, Kind], str | None] | None = None  # returns why a kind refuses the value, or None
    engines: tuple[str, ...] = (AGENT, IPERF3)
    iperf3: Callable[[_T], Sequence[str]] | None = None  # returns options for iperf3's command line
    order: OrderKey | None = None
    effective: Effective[_T] | None = None
    columns: tuple[DataColumn, ...] = ()  # columns in exports
    title: Title[_T] | None = None
    phrase: Callable[[_T], str] | None = None  # returns the setting with its value for sentences: "MSS 1460"
    noun: str = ""  # name in sentences: "default MSS"; "": same as `name`
    hint: str = ""  # says what to use instead, at the end of the message that refuses the setting

    def __repr__(self) -> str:
        return self.name.upper()

    @property
    def header(self) -> str:
        """Return the header of the column in `rigctl plan`."""
        return self.heading or self.name.replace("_", " ").capitalize()

    @property
    def requested(self) -> str | None:
        """Return the name of the column with the requested value, or None if exports have only the effective value."""
        used = self.effective.column if self.effective is not None else None
        return next((each.name for each in self.columns if each.name == self.stored_as != used), None)

    @property
    def read_as(self) -> Any:  # noqa: ANN401 — any type
        """Return the type of the value that the agent reports for an end; None if it reports no value."""
        own = self.effective
        return own and (own.reported_type or (own.type if own.counted is None else Counts))

    @property
    def stored_as(self) -> str | None:
        """Return the name of the setting in stored plans, or None if stored plans lack the setting."""
        return self.name if self.stored == "" else self.stored

    def takes(self, kind: Kind) -> bool:
        """Tell whether tests of this kind have the setting."""
        return self.kinds is None or kind in self.kinds

    def differs(self, asked: _T, side: object, effective: _T | None) -> bool:
        """Tell whether the effective value at an end differs from the requested value; False if either is unknown."""
        if asked is None or effective is None or self.effective is None:
            return False
        return not (self.effective.equal(asked, side) if self.effective.equal else asked == effective)


class Settings(Mapping[Setting[Any], Any]):
    """An immutable mapping from settings to values; a setting without a value has its `unset` value."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[Any, Any] | Iterable[tuple[Setting[Any], Any]] = ()) -> None:
        self._values = {setting: value for setting, value in dict(values).items() if value != setting.unset}

    def __getitem__(self, setting: Setting[_T]) -> _T:
        value: _T = self._values.get(setting, setting.unset)
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
        """Return a schema with which pydantic accepts only instances of this class, unchanged."""
        return {"type": "is-instance", "cls": cls}


NO_SETTINGS: Final = Settings()


def or_default(parse: Callable[[str, object], _T]) -> Callable[[str, object], _T | None]:
    """Return a parser that reads the text `default` as None, and other values with `parse`."""
    return lambda name, value: None if value == DEFAULT else parse(name, value)


def flag(name: str, **more: Any) -> Setting[bool | None]:  # noqa: ANN401 — fields of Setting
    """Return a setting with the values true, false, or None for the node's default."""
    named: dict[str, Any] = {
        "parse": or_default(parse_flag),
        "text": lambda on: value_words(on).lower(),
        "schema": {"anyOf": [{"type": "boolean"}, {"const": DEFAULT}], "examples": [True, False]},
        "unset": None,
        "type": bool,
        "phrase": lambda on: name if on else f"no {name}",
    }
    return Setting(name=name, **named | more)


def whole_number(name: str, low: int, high: int, *examples: int, **more: Any) -> Setting[int | None]:  # noqa: ANN401
    """Return a setting whose value is a whole number within bounds, or None for the node's default."""
    named: dict[str, Any] = {
        "parse": or_default(lambda key, value: parse_whole(key, value, low, high, examples[0])),
        "schema": {
            "anyOf": [RANGE_SCHEMA, {"type": "integer", "minimum": low, "maximum": high}, {"const": DEFAULT}],
            "examples": list(examples),
        },
        "unset": None,
        "spans": "numbers",
    }
    return Setting(name=name, **named | more)


def choice(name: str, words: Sequence[str], **more: Any) -> Setting[Any]:  # noqa: ANN401 — fields of Setting
    """Return a setting whose value is one of `words`."""
    named: dict[str, Any] = {
        "parse": lambda key, value: parse_choice(key, value, words),
        "schema": {"enum": list(words), "examples": [words[-1]]},
        "unset": None,
        "type": str,
    }
    return Setting(name=name, **named | more)


def as_column(name: str, unit: str, meaning: str, digits: int | None = None) -> DataColumn:
    """Return a column at the levels cells, pairs and flows."""
    return DataColumn(name=name, unit=unit, levels=MEASURED, meaning=meaning, digits=digits)
