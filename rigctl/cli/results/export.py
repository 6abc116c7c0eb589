"""Write the data of runs for other systems, or whole runs for another store.

csv, json, md, parquet: rows of all runs that are named or fit the filters; the column `run` tells them apart
(docs/reference/columns.md). --level says what a row is: a test (`cells`), a pair (`pairs`), a flow (`flows`), an
interval (`intervals`), a bin (`bins`), a bucket (`histogram`) or a phase of a pair (`phases`). junit, ktap: tests
and expectations as test cases; openmetrics: figures of tests and pairs; bencher, benchmark-action (goodput, bigger is
better) and benchmark-action-smaller (round trips and loss): figures of tests for services that track benchmarks
(docs/how-to/ci.md); hgrm: times of ping-pong, connections or requests by percentile, in µs, as HdrHistogram writes
them, a file for each test and pair (docs/reference/results.md); slurm: a command for each slow node of a mesh, which
drains it (docs/how-to/slurm.md); rigctl: whole runs, for `rigctl import`.

Examples:
  rigctl export --level pairs -o pairs.csv
  rigctl export 20261121 --format json
  rigctl export --format hgrm -o percentiles/
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from rigctl.base.errors import InputError, extra
from rigctl.base.files import write_files
from rigctl.base.texts import printable_lines
from rigctl.cli.options import FORMAT, Anonymous, OutputFile, StoreAddress, complete_run, take_options
from rigctl.cli.output import write_output
from rigctl.cli.stored_runs import (
    ANY_RUN,
    Filters,
    list_stored_runs,
    read_filters,
    read_view,
    readable_store,
)
from rigctl.figures import Level
from rigctl.findings.text import plural
from rigctl.report.export.ci import bencher, benchmark_action, has_smaller, ktap_of, suite_of
from rigctl.report.export.formats import BINARY, FORMATS
from rigctl.report.export.hgrm import percentile_files
from rigctl.report.export.slurm import drain_commands
from rigctl.report.printers.junit import junit
from rigctl.results.frames import Frames
from rigctl.results.read import read_results
from rigctl.results.rows import ExportRow
from rigctl.runner.resume import Fate, fate
from rigctl.store import Store, open_store
from rigctl.store.run_files import pack_runs

_Format: TypeAlias = Literal[
    "csv", "json", "md", "parquet", "rigctl", "junit", "ktap", "openmetrics", "bencher", "benchmark-action",
    "benchmark-action-smaller", "hgrm", "slurm",
]  # fmt: skip
_LevelName: TypeAlias = Literal["cells", "pairs", "flows", "intervals", "bins", "histogram", "phases"]


@take_options(read_filters, "filters")
def export_runs(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN…",
            help="Run id, its beginning or end, or latest~N (default: latest); "
            "several for csv, json, md, parquet, rigctl.",
            autocompletion=complete_run,
        ),
    ] = None,
    kind: Annotated[_Format, FORMAT] = "csv",
    level: Annotated[_LevelName, typer.Option("--level", "-l", help="Write one row per cell, pair, flow, …")] = "pairs",
    filters: Filters = ANY_RUN,
    output: OutputFile = None,
    anonymous: Anonymous = False,
    store: StoreAddress = None,
) -> None:
    if output is None and kind in {*BINARY, "rigctl"}:
        raise InputError(f"export: {kind} is a binary format. Name a file, as in -o run.{kind}")
    if anonymous and kind == "slurm":
        raise InputError("export: slurm is commands with the names of nodes. Leave --anonymous out")
    with open_store(store, create=False) as opened:
        chosen = _choose(opened, runs or [], filters)
        if kind == "rigctl":
            _refuse_alive(opened, chosen)
        with readable_store(opened, chosen, anonymous=anonymous) as source:
            if kind == "hgrm":
                _write_percentiles(percentile_files(read_view(source, _only_run(chosen, kind))), output)
                return
            content = _content(source, chosen, kind, Level[level.upper()])
    write_output(content, output)


def _write_percentiles(files: Mapping[str, bytes], output: Path | None) -> None:
    """Write the files into the folder `output`; a single one also to standard output, or to `output` as a file."""
    several = plural(len(files), "file")
    is_file = output is None or (not output.is_dir() and (output.exists() or output.suffix == ".hgrm"))
    if output is None or is_file:
        if len(files) > 1:
            place = "export" if output is None else output
            raise InputError(
                f"{place}: hgrm is {several}, one for each test and pair. Name a folder, as in -o percentiles"
            )
        (content,) = files.values()
        write_output(content, output)
        return
    write_files(files, output)
    print(f"{output}: {several}", file=sys.stderr)


def _content(source: Store, chosen: list[str], kind: _Format, level: Level) -> bytes:
    if kind == "rigctl":
        return pack_runs(source, chosen)
    if kind in FORMATS:
        return FORMATS[kind]((row for run in chosen for row in _rows(source, run, level)), level)
    return _of_run(source, _only_run(chosen, kind), kind)


def _only_run(chosen: list[str], kind: _Format) -> str:
    if len(chosen) > 1:
        raise InputError(f"export: {kind} takes one run, not {len(chosen)}. Name one, or give another format")
    return chosen[0]


def _choose(opened: Store, names: list[str], filters: Filters) -> list[str]:
    """Return the ids of the named runs, else of the runs that fit the filters, else of the latest run."""
    if filters == ANY_RUN:
        return list(dict.fromkeys(opened.run_id(name) for name in names)) or [opened.run().run]
    if names:
        raise InputError(f"export: RUN and {filters} are given. Give one of them")
    stored, damaged = list_stored_runs(opened)
    for message in damaged:
        print(f"left out: {printable_lines(message)}", file=sys.stderr)
    if chosen := [run.info.run for run in stored if filters.fit(run)]:
        return chosen
    raise InputError(f"export: no run of {len(stored)} fits {filters}. `rigctl runs` lists them")


def _refuse_alive(opened: Store, chosen: list[str]) -> None:
    """Raise `InputError` for a run in progress, of which a run file would be a part."""
    controllers = opened.controllers()
    for run in chosen:
        if fate(controllers.get(run)) is Fate.ALIVE:
            raise InputError(f"run {run} is still running. Export it when it has ended")


def _rows(opened: Store, run: str, level: Level) -> list[ExportRow]:
    return Frames(read_results(opened, opened.run(run))).rows(level)


def _of_run(opened: Store, run: str, kind: _Format) -> bytes:
    view = read_view(opened, run)
    if kind == "openmetrics":
        with extra("openmetrics", "export --format openmetrics"):
            from rigctl.report.export import openmetrics

        return openmetrics.render(view)
    if kind == "junit":
        return junit([suite_of(view)]).encode()
    if kind == "ktap":
        return ktap_of(view).encode()
    if kind == "bencher":
        return bencher(view)
    if kind == "slurm":
        commands, notes = drain_commands(view)
        print(*map(printable_lines, notes), sep="\n", end="\n" * bool(notes), file=sys.stderr)
        return "".join(f"{command}\n" for command in commands).encode()
    smaller = kind == "benchmark-action-smaller"
    if not smaller and has_smaller(view):
        print("Round trips and loss are missing. To export them: --format benchmark-action-smaller", file=sys.stderr)
    return benchmark_action(view, smaller=smaller)
