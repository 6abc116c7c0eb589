"""Blocks of a report: plain records for every printer, independent of the kind of test.

A number in a table keeps its value beside its text, so no printed text is ever parsed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from rigctl.findings import Finding, Weight
from rigctl.report.charts.plot import Plot

CellValue: TypeAlias = float | int | str | bool | None

Group: TypeAlias = Literal["requested", "measured", "derived"]


@dataclass(frozen=True, slots=True)
class Column:
    """Title and unit of a column, and hints for a narrow terminal (`rigctl/report/printers/slim.py`)."""

    title: str
    unit: str = ""
    group: Group = "measured"
    words: bool = False  # texts, which are left-aligned
    short: str | None = None  # shorter title and unit, for narrow tables
    phrase: str = ""  # sentence on a value that all tests share, with {} for the value; empty: title, value and unit
    granted: str = ""  # for a column of effective values: title of the column of requested values
    share_of: str = ""  # for a column of shares: title of the column with the ceiling
    minor: int = 0  # columns with the largest number are omitted first on a narrow terminal; -1: main columns
    name: str = ""  # original title of a column that the scenario renames


@dataclass(frozen=True, slots=True)
class Entry:
    """One table field. `value` is in the column's unit, or a tuple if the text lists several values."""

    text: str
    value: CellValue | tuple[CellValue, ...] = None
    mark: Literal["", "good", "warn"] = ""
    colour: str = ""  # style sheet class for the background of the field
    parts: tuple[str, ...] = ()  # texts of the single streams, in the order of `Table.streams`
    as_asked: bool = False  # the effective value need not be printed beside the requested value


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Small lines in a table row, as colours and values from 0 to `most`. `label` is the text alternative."""

    lines: tuple[tuple[str, tuple[float, ...]], ...]
    most: float
    label: str


@dataclass(frozen=True, slots=True)
class Row:
    entries: tuple[Entry, ...]
    test: int | None = None  # number of the row's test
    notes: tuple[int, ...] = ()  # numbers of the row's notes, which are printed below the table
    counted: bool = True  # the test has at least one valid repetition
    over_time: Sparkline | None = None


@dataclass(frozen=True, slots=True)
class Table:
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    legend: tuple[str, ...] = ()
    label: str = "Results"
    total: Row | None = None  # row of sums, printed below a rule
    streams: tuple[tuple[str, str], ...] = ()  # sender and receiver of each stream, if equal in all rows


@dataclass(frozen=True, slots=True)
class Key:
    """One legend item: a name and the style sheet class of its colour, such as `s1`, `l3` or `ceiling`."""

    name: str
    colour: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A plot with its text alternative `label`, which says what is drawn and what it shows."""

    plot: Plot
    label: str
    caption: str = ""
    heading: str = ""  # heading in bold before the caption
    narrow: Plot | None = None  # plot for a phone, in place of `plot`


@dataclass(frozen=True, slots=True)
class Charts:
    """Charts with a common legend. They stand side by side, or below each other if `wide`."""

    charts: tuple[Chart, ...]
    keys: tuple[Key, ...] = ()
    wide: bool = False


@dataclass(frozen=True, slots=True)
class HeatField:
    text: str
    colour: str  # style sheet class for the field's background; empty: not measured
    value: float | None = None


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A table with coloured fields."""

    title: str
    corner: str  # title of the column with the row labels
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatField, ...]], ...]


@dataclass(frozen=True, slots=True)
class HeatMaps:
    """Heat maps on one colour scale, folded away in a page if `folded`. `scale` has the lowest value of each colour."""

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
    """Sentences, printed one below the other."""

    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Term:
    name: str
    detail: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Terms:
    """Names, each with sentences about it."""

    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Text that is printed unchanged, such as a file."""

    text: str


@dataclass(frozen=True, slots=True)
class Folded:
    """Blocks that a page hides until the reader opens their summary."""

    summary: str
    blocks: tuple["Block", ...]


Block: TypeAlias = Table | Charts | HeatMaps | Paragraph | Items | Terms | Verbatim | Folded


@dataclass(frozen=True, slots=True)
class Section:
    """A titled section of a report. A terminal prints it if `brief`, and with --all also if `full`."""

    title: str
    blocks: tuple[Block, ...]
    brief: bool = False
    full: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """The contribution of one subject to a report: findings, sections and, for a kind of test, the results table.

    `lead` (heat maps) replaces a long results table. `details` follow the sections of all parts. `method` says how the
    test was measured. `sparklines`, by test number, go into the table's rows.
    """

    findings: tuple[Finding, ...] = ()
    results: Table | None = None
    lead: tuple[Section, ...] = ()
    sections: tuple[Section, ...] = ()
    details: tuple[Section, ...] = ()
    method: tuple[str, ...] = ()
    leads: bool = False  # `lead` replaces even a short table of results
    picture: Charts | None = None  # picture below the answer; the first part with a picture wins
    sparklines: Mapping[int, Sparkline] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of one expectation for one test or pair. `value` is in `unit`, or None if it is unknown."""

    test: int
    pair: str | None
    figure: str  # name of the figure in the scenario, as goodput
    column: str  # name of the export column, as goodput_mbps
    expected: str  # bound as written in the scenario, as >= 930M per pair
    value: float | str | None
    unit: str
    met: bool
    measured: str  # measured value as text, or why it is unknown


_FALLEN_SHORT: Final = (Weight.FAILED, Weight.EXPECTED, Weight.MISSING)


@dataclass(frozen=True, slots=True)
class Document:
    """The whole report of a run. `findings` are ordered by weight; the first is the answer."""

    title: str
    run: str
    about: tuple[str, ...]  # words on the rig, its kind, the date and the duration
    notes: str
    findings: tuple[Finding, ...]
    results: tuple[Section, ...]
    sections: tuple[Section, ...]
    footer: str
    settings: tuple[tuple[str, str], ...] = ()  # names and values of settings in effect in all tests
    pairs: tuple[Mapping[str, Any], ...] = ()  # export rows of level `pairs`
    export: str = ""  # the command that exports the run's data
    show: str = ""  # the command that prints the whole report in a terminal
    tags: tuple[tuple[str, str], ...] = ()  # the user's tags, as names and values
    verdicts: tuple[Verdict, ...] = ()
    picture: Charts | None = None

    @property
    def fell_short(self) -> tuple[Finding, ...]:
        """Return the findings, except the answer, on what was missed, failed or not measured."""
        return tuple(finding for finding in self.findings[1:] if finding.weight in _FALLEN_SHORT)

    @property
    def answer(self) -> str:
        return self.findings[0].text if self.findings else ""
