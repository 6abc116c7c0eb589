"""`rigctl export`: the data of a run, as CSV, JSON, Markdown or Parquet; its verdicts and figures for other systems."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rigctl.cli.options import RunId, StoreAddress
from rigctl.columns import Level
from rigctl.errors import InputError

if TYPE_CHECKING:
    from rigctl.store import Store


class Format(StrEnum):
    CSV = "csv"
    JSON = "json"
    MD = "md"
    PARQUET = "parquet"
    JUNIT = "junit"
    OPENMETRICS = "openmetrics"


class LevelName(StrEnum):
    CELLS = "cells"
    PAIRS = "pairs"
    FLOWS = "flows"
    INTERVALS = "intervals"
    BINS = "bins"
    HISTOGRAM = "histogram"


def export(
    run: RunId = None,
    kind: Annotated[Format, typer.Option("--format", "-f", help="Write this format.")] = Format.CSV,
    level: Annotated[LevelName, typer.Option("--level", "-l", help="Choose what a row stands for.")] = LevelName.PAIRS,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to this file (default: standard output)."),
    ] = None,
    store: StoreAddress = None,
) -> None:
    """Write the data of RUN: a row per test, pair, flow, interval, bin or bucket (see docs/columns.md); or, for other
    systems, what was measured and expected as JUnit XML (junit), the figures of tests and pairs (openmetrics).
    """
    from rigctl.report.export import BINARY
    from rigctl.report.files import write_whole
    from rigctl.store import open_store

    if output is None and kind in BINARY:
        raise InputError(f"export: {kind} is a binary format. Name a file, as in -o run.{kind}")
    with open_store(store, create=False) as opened:
        of_run = kind in (Format.JUNIT, Format.OPENMETRICS)
        content = _of_run(opened, run, kind) if of_run else _rows(opened, run, kind, level)
    if output is not None:
        write_whole(output, content)
        return
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _rows(opened: "Store", run: str | None, kind: Format, level: LevelName) -> bytes:
    from rigctl.analysis.drawn import sampled
    from rigctl.analysis.frames import load
    from rigctl.report.export import FORMATS

    info = opened.run(run)
    whole = level in (LevelName.INTERVALS, LevelName.BINS)
    repetitions = opened.repetitions(info.run, series=True if whole else sampled(info.plan))
    return FORMATS[kind](load(info, repetitions), Level[level.upper()])


def _of_run(opened: "Store", run: str | None, kind: Format) -> bytes:
    """A file about the run as a whole, whatever the level."""
    from rigctl.analysis.drawn import sampled

    info = opened.run(run)
    repetitions = opened.repetitions(info.run, series=sampled(info.plan))
    if kind is Format.OPENMETRICS:
        from rigctl.analysis.run_view import RunView
        from rigctl.report.export import openmetrics

        return openmetrics.render(RunView(info, repetitions))
    from rigctl.report.document import document
    from rigctl.report.junit import junit
    from rigctl.report.run_cases import suite_of

    return junit([suite_of(info, repetitions, document(info, repetitions))]).encode()
