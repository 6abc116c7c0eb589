"""Blocks of a report: plain records that every printer can print and that know no kind of test.

A number in a table keeps its value beside its text: nothing is read back from printed text.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from rigctl.findings import Finding, Weight
from rigctl.report.charts.plot import Plot

Scalar: TypeAlias = float | int | str | bool | None

Group: TypeAlias = Literal["requested", "measured", "derived"]


@dataclass(frozen=True, slots=True)
class Column:
    """Title and unit of a column, and what a narrow terminal makes of it (`rigctl/report/printers/slim.py`)."""

    title: str
    unit: str = ""
    group: Group = "measured"
    words: bool = False  # left-aligned
    short: str | None = None  # title and unit where there is little room
    phrase: str = ""  # in a sentence on all tests, with {} for the value; empty: title, value and unit
    granted: str = ""  # title of the requested column whose effective value this is
    share_of: str = ""  # title of the column with the ceiling of which this is the share
    minor: int = 0  # what has the largest number is left out first; the table is about what has -1
    name: str = ""  # its title, where a scenario gives another one


@dataclass(frozen=True, slots=True)
class Entry:
    """One field of a table: `value` in the column's unit, a tuple where the text lists several."""

    text: str
    value: Scalar | tuple[Scalar, ...] = None
    mark: Literal["", "good", "warn"] = ""
    colour: str = ""  # of its field, a class of the style sheet
    parts: tuple[str, ...] = ()  # the text of each stream of `Table.streams`
    as_asked: bool = False  # an effective value that needs no words beside the requested one


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Lines of a row, from 0 to `most`, drawn in a page: colours and values. `label` is the text alternative."""

    lines: tuple[tuple[str, tuple[float, ...]], ...]
    most: float
    label: str


@dataclass(frozen=True, slots=True)
class Row:
    entries: tuple[Entry, ...]
    test: int | None = None  # the number of its test
    notes: tuple[int, ...] = ()  # numbers of the notes below the table, from 1
    counted: bool = True  # some repetition counts
    over_time: Sparkline | None = None


@dataclass(frozen=True, slots=True)
class Table:
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    legend: tuple[str, ...] = ()
    label: str = "Results"
    total: Row | None = None  # below a line
    phone: tuple[int, ...] = ()  # numbers of the columns that a phone shows; all are folded below. Empty: cards
    streams: tuple[tuple[str, str], ...] = ()  # sender and receiver, alike in all rows


@dataclass(frozen=True, slots=True)
class Key:
    """One item of a legend: a name and the class of its colour in the style sheet, as `s1`, `l3`, `ceiling`."""

    name: str
    colour: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A plot; `label` is its text alternative: what is drawn and its message."""

    plot: Plot
    label: str
    caption: str = ""
    heading: str = ""  # before the caption, in bold
    narrow: Plot | None = None  # in its place on a phone


@dataclass(frozen=True, slots=True)
class Charts:
    """Charts with one legend; small ones stand side by side, wide ones below each other."""

    charts: tuple[Chart, ...]
    keys: tuple[Key, ...] = ()
    wide: bool = False


@dataclass(frozen=True, slots=True)
class HeatField:
    text: str
    colour: str  # a class of the style sheet; empty: not measured
    value: float | None = None


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A table of coloured fields."""

    title: str
    corner: str  # head of the row labels
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatField, ...]], ...]


@dataclass(frozen=True, slots=True)
class HeatMaps:
    """Heat maps on one scale, in a page `folded`. `scale`: the colours with the value at which each begins."""

    maps: tuple[HeatMap, ...]
    unit: str
    scale: tuple[HeatField, ...] = ()
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str
    small: bool = False


@dataclass(frozen=True, slots=True)
class Items:
    """Sentences, one below the other."""

    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Term:
    name: str
    detail: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Terms:
    """Names with what is reported of each."""

    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Text that is shown as it is, such as a file."""

    text: str


@dataclass(frozen=True, slots=True)
class Folded:
    """Blocks behind a summary that opens them."""

    summary: str
    blocks: tuple["Block", ...]


Block: TypeAlias = Table | Charts | HeatMaps | Paragraph | Items | Terms | Verbatim | Folded


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of a report. A terminal shows it if `brief`, with --all also if `full`."""

    title: str
    blocks: tuple[Block, ...]
    brief: bool = False
    full: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """Findings and sections of one subject and, for the kind of test, the results table.

    `results` is the table of the run, `lead` stands in its place where it is too long (heat maps); `details` come
    after the sections of all parts; `method` says how it was measured; `sparklines`, by the number of the test, go into
    the rows of the table.
    """

    findings: tuple[Finding, ...] = ()
    results: Table | None = None
    lead: tuple[Section, ...] = ()
    sections: tuple[Section, ...] = ()
    details: tuple[Section, ...] = ()
    method: tuple[str, ...] = ()
    leads: bool = False  # `lead` stands in the table's place however short that is
    picture: Charts | None = None  # below the answer; the first part's that has one
    sparklines: Mapping[int, Sparkline] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of one expectation for one test or pair. `value` in `unit`; `None`: not known."""

    test: int
    pair: str | None
    figure: str  # in the scenario: goodput
    column: str  # goodput_mbps
    expected: str  # as in the scenario: >= 930M per pair
    value: float | str | None
    unit: str
    met: bool
    measured: str  # the value for people, or why it is not known


_FALLEN_SHORT: Final = (Weight.FAILED, Weight.EXPECTED, Weight.MISSING)


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report of a run. `findings` are in the order of their weight; the first is the headline."""

    title: str
    run: str
    about: tuple[str, ...]  # rig and whether it is virtual, date and duration
    notes: str
    findings: tuple[Finding, ...]
    results: tuple[Section, ...]
    sections: tuple[Section, ...]
    footer: str
    settings: tuple[tuple[str, str], ...] = ()  # in use in all tests: names and values
    pairs: tuple[Mapping[str, Any], ...] = ()  # the rows of the export's level `pairs`
    export: str = ""  # the command that gives the run's data
    show: str = ""  # the command that shows all of it in a terminal
    tags: tuple[tuple[str, str], ...] = ()  # that users gave the run: names and values
    verdicts: tuple[Verdict, ...] = ()
    picture: Charts | None = None

    @property
    def fell_short(self) -> tuple[Finding, ...]:
        """Return the findings after the answer that say what was not as expected, or not measured."""
        return tuple(finding for finding in self.findings[1:] if finding.weight in _FALLEN_SHORT)

    @property
    def answer(self) -> str:
        return self.findings[0].text if self.findings else ""
