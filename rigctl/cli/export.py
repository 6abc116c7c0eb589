"""`rigctl export`: a run's data (CSV, JSON, Markdown, Parquet), verdicts, figures; whole runs for another store."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rigctl.cli.completion import run_ids
from rigctl.cli.options import StoreAddress
from rigctl.columns import Level
from rigctl.errors import InputError

if TYPE_CHECKING:
    from rigctl.store import Store


class Format(StrEnum):
    CSV = "csv"
    JSON = "json"
    MD = "md"
    PARQUET = "parquet"
    RIGCTL = "rigctl"
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
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN",
            help="Id of the run, its beginning, or latest~N (default: latest); several with --format rigctl.",
            autocompletion=run_ids,
        ),
    ] = None,
    kind: Annotated[Format, typer.Option("--format", "-f", help="Write this format.")] = Format.CSV,
    level: Annotated[LevelName, typer.Option("--level", "-l", help="Choose what a row stands for.")] = LevelName.PAIRS,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to this file (default: standard output)."),
    ] = None,
    store: StoreAddress = None,
) -> None:
    """Write the data of RUN as rows, for other systems, or whole for another store.

    Rows (csv, json, md, parquet) are of tests, pairs, flows, intervals, bins or buckets (docs/reference/columns.md);
    junit: what was measured and expected; openmetrics: figures of tests and pairs; rigctl: whole runs, for
    `rigctl import`.
    """
    from rigctl.report.export import BINARY
    from rigctl.report.files import write_whole
    from rigctl.store import open_store

    if output is None and kind in (*BINARY, Format.RIGCTL):
        raise InputError(f"export: {kind} is a binary format. Name a file, as in -o run.{kind}")
    if len(runs or ()) > 1 and kind is not Format.RIGCTL:
        raise InputError(f"export: {kind} has one run. Name one, or give --format rigctl")
    with open_store(store, create=False) as opened:
        if kind is Format.RIGCTL and output is not None:
            write_whole(output, _whole(opened, runs or []))
            return
        run = runs[0] if runs else None
        of_run = kind in (Format.JUNIT, Format.OPENMETRICS)
        content = _of_run(opened, run, kind) if of_run else _rows(opened, run, kind, level)
    if output is not None:
        write_whole(output, content)
        return
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _whole(opened: "Store", names: list[str]) -> bytes:
    """The runs as they are stored, as one file."""
    from rigctl.records import RunStatus
    from rigctl.runner.resume import Fate, fate

    chosen = list(dict.fromkeys(opened.run_id(name) for name in names)) or [opened.run().run]
    for run in chosen:
        if opened.run(run).status is RunStatus.RUNNING and fate(opened.controller(run)) is Fate.ALIVE:
            raise InputError(f"run {run} is still running. Export it when it has ended")
    return opened.transfer.packed(chosen)


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
    from rigctl.analysis.run_view import RunView

    info = opened.run(run)
    view = RunView(info, opened.repetitions(info.run, series=sampled(info.plan)))
    if kind is Format.OPENMETRICS:
        from rigctl.report.export import openmetrics

        return openmetrics.render(view)
    from rigctl.report.junit import junit
    from rigctl.report.run_cases import suite_of

    return junit([suite_of(view)]).encode()
