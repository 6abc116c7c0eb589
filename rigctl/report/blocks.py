"""Defines the records of a report (tables, charts, texts, sections), for every printer and every kind of test.

A table field holds its value besides its text, so a printer need not parse texts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from rigctl.figures.figure import FiguresOfTest
from rigctl.findings import Finding, Severity, Weight
from rigctl.report.charts.plot import Plot

CellValue: TypeAlias = float | int | str | bool | None
Group: TypeAlias = Literal["requested", "measured", "derived"]


@dataclass(frozen=True, slots=True)
class Column:
    """Title and unit of a table column, and hints for narrow terminals (`rigctl/report/printers/slim.py`)."""

    title: str
    unit: str = ""
    group: Group = "measured"
    words: bool = False  # the entries are texts, so they are left-aligned
    short: str | None = None  # title and unit in narrow tables; None: made from `title` and `unit`
    phrase: str = ""  # how to state a value that all tests share, as `MSS {} on the wire`; empty: title, value, unit
    granted: str = ""  # if this column has effective values: title of the column with the requested values
    share_of: str = ""  # if this column has percentages of a ceiling: first word of the title of the ceiling's column
    minor: int = 0  # narrow terminals omit the columns with the largest number first; -1: a main column
    name: str = ""  # title before the scenario renamed the column; empty: not renamed


@dataclass(frozen=True, slots=True)
class Entry:
    """A table field: its text, and its value in the column's unit (a tuple if the text lists several values)."""

    text: str
    value: CellValue | tuple[CellValue, ...] = None
    mark: Literal["", "good", "warn"] = ""
    colour: str = ""  # CSS class of the background
    parts: tuple[str, ...] = ()  # text of each stream, in the order of `Table.streams`
    as_asked: bool = False  # the kernel granted the requested value, so a narrow table omits this effective value


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Chart in a table row: each line has a CSS class and values from 0 to `most`. `label` is the text alternative."""

    lines: tuple[tuple[str, tuple[float, ...]], ...]
    most: float
    label: str


@dataclass(frozen=True, slots=True)
class Row:
    entries: tuple[Entry, ...]
    test: int | None = None  # number of the row's test; None: no test or several tests
    notes: tuple[int, ...] = ()  # numbers of the row's notes, which are printed below the table
    counted: bool = True  # the test has at least one valid repetition
    over_time: Sparkline | None = None
    part: str | None = None  # part of the scenario that the row's test is in; None: the scenario has no parts


@dataclass(frozen=True, slots=True)
class Table:
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    legend: tuple[str, ...] = ()
    label: str = "Results"
    total: Row | None = None  # sums of the columns, printed below the rows
    streams: tuple[tuple[str, str], ...] = ()  # sender and receiver of each stream; empty if rows differ


@dataclass(frozen=True, slots=True)
class Key:
    """One legend item: a name and the CSS class of its colour, such as `s1`, `l3` or `ceiling`."""

    name: str
    colour: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A plot with its text alternative `label`, which says what is drawn and what it shows."""

    plot: Plot
    label: str
    caption: str = ""
    heading: str = ""  # heading in bold before the caption
    narrow: Plot | None = None  # plot for phones; None: `plot`


@dataclass(frozen=True, slots=True)
class Charts:
    """Charts with a common legend. They stand side by side, or below each other if `wide`."""

    charts: tuple[Chart, ...]
    keys: tuple[Key, ...] = ()
    wide: bool = False


@dataclass(frozen=True, slots=True)
class HeatField:
    text: str
    colour: str  # CSS class of the background; empty: not measured
    value: float | None = None


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A table whose fields are coloured by their values."""

    title: str
    corner: str  # title of the column with the row labels
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatField, ...]], ...]


@dataclass(frozen=True, slots=True)
class HeatMaps:
    """Heat maps with one colour scale. A page folds them if `folded`. `scale` has the lowest value of each colour."""

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
    """Subjects such as `Test 3`, each with sentences about it."""

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


def tables_in(blocks: Iterable[Block]) -> Iterator[Table]:
    """Yield all tables, also those inside folded blocks."""
    for block in blocks:
        if isinstance(block, Folded):
            yield from tables_in(block.blocks)
        elif isinstance(block, Table):
            yield block


@dataclass(frozen=True, slots=True)
class Section:
    """A titled section of a report. A terminal prints only `brief` sections; with --all, also `full` sections."""

    title: str
    blocks: tuple[Block, ...]
    brief: bool = False
    full: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a report that one module makes: findings, sections and, for a kind of test, the results table.

    A long results table is folded below `lead`, such as heat maps. `details` are printed after all parts' `sections`.
    `method` says how the tests were measured. `sparklines`, by test number, go into the rows of the results table.
    """

    findings: tuple[Finding, ...] = ()
    results: Table | None = None
    lead: tuple[Section, ...] = ()
    sections: tuple[Section, ...] = ()
    details: tuple[Section, ...] = ()
    method: tuple[str, ...] = ()
    leads: bool = False  # True: even a short results table is folded below `lead`
    picture: Charts | None = None  # chart below the answer; a report shows the chart of the first part that has one
    sparklines: Mapping[int, Sparkline] = field(default_factory=dict)
    verdicts: tuple["Verdict", ...] = ()  # on the expectations of the scenario


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of one expectation for one test or pair. `value` is in `unit`, or None if it is unknown."""

    test: int
    pair: str | None
    figure: str  # name of the figure in the scenario, such as `goodput`
    column: str  # name of the export column, such as `goodput_mbps`
    expected: str  # bound as written in the scenario, such as `>= 930M per pair`
    value: float | str | None
    unit: str
    met: bool
    measured: str  # measured value as text, or why it is unknown


@dataclass(frozen=True, slots=True)
class Brief:
    """The head of a report. With the title and one warning, these are the lines that a reader posts."""

    request: str  # what was measured: `7 settings × 4 × 5 s, both pairs at once`
    about: str  # kind of the rig and the day
    mean: str = ""  # mean and standard deviation of all repetitions; empty if tests differ, or repetitions are too few
    facts: tuple[str, ...] = ()  # slowest and fastest result, losses
    parts: tuple[str, ...] = ()  # a line for each part of the run: its name, and its answer in a few words


@dataclass(frozen=True, slots=True)
class Document:
    """The whole report of a run. `findings` are ordered by weight; the first is the answer."""

    title: str
    run: str
    about: tuple[str, ...]  # texts below the answer: rig and its kind, start, duration
    notes: str
    findings: tuple[Finding, ...]
    results: tuple[Section, ...]
    sections: tuple[Section, ...]
    footer: str
    settings: tuple[tuple[str, str], ...] = ()  # names and values of the settings in effect
    pairs: tuple[Mapping[str, Any], ...] = ()  # export rows of level `pairs`: one per test, repetition and pair
    export: str = ""  # the command that exports the run's data
    show: str = ""  # the command that prints the whole report in a terminal
    tags: tuple[tuple[str, str], ...] = ()  # the user's tags, as names and values
    verdicts: tuple[Verdict, ...] = ()
    picture: Charts | None = None
    brief: Brief | None = None
    # Gives the known figures of each test and stream; only JSON asks for them.
    figures: Callable[[], Iterable[FiguresOfTest]] = field(default=tuple, compare=False, repr=False)

    @property
    def fell_short(self) -> tuple[Finding, ...]:
        """Return the findings on missed expectations and on what failed or was not measured, without the answer."""
        return tuple(own for own in self.findings[1:] if own.weight in (Weight.FAILED, Weight.EXPECTED, Weight.MISSING))

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Return the findings that stand beside the answer: what fell short, else the first warning of a run."""
        others = [own for own in self.findings[1:] if own.level in (Severity.WARNING, Severity.ERROR)]
        return self.fell_short or tuple(others[: 1 if self.brief else 0])

    @property
    def answer(self) -> str:
        return self.findings[0].text if self.findings else ""
