"""`rigctl export`: the data of a run, as CSV, JSON, Markdown or Parquet."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rigctl.cli.options import RunId, StoreAddress
from rigctl.columns import Level
from rigctl.errors import InputError


class Format(StrEnum):
    CSV = "csv"
    JSON = "json"
    MD = "md"
    PARQUET = "parquet"


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
    """Write the data of RUN: one row per test, pair, flow, interval, bin or bucket (see docs/columns.md)."""
    from rigctl.analysis.drawn import sampled
    from rigctl.analysis.frames import load
    from rigctl.report.export import BINARY, FORMATS
    from rigctl.report.files import write_whole
    from rigctl.store import open_store

    if output is None and kind in BINARY:
        raise InputError(f"export: {kind} is a binary format. Name a file, as in -o run.{kind}")
    with open_store(store, create=False) as opened:
        info = opened.run(run)
        whole = level in (LevelName.INTERVALS, LevelName.BINS)
        repetitions = opened.repetitions(info.run, series=True if whole else sampled(info.plan))
    content = FORMATS[kind](load(info, repetitions), Level[level.upper()])
    if output is not None:
        write_whole(output, content)
        return
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
