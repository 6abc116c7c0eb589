"""`rigctl export` writes the data of runs, or whole runs for another store; `rigctl import` stores whole runs."""

import sys
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

import typer

from rigctl.analysis.rows.cells import Row
from rigctl.analysis.rows.frames import load
from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.over_time import sampled
from rigctl.base.errors import InputError, extra
from rigctl.base.files import write_whole
from rigctl.base.texts import printable_lines
from rigctl.cli.options import OutputFile, StoreAddress, run_ids
from rigctl.cli.stored_runs import ANY_RUN, Filters, stored_runs, with_filters
from rigctl.figures import Level
from rigctl.measure.iperf3_files import Imported, imported, reports_of
from rigctl.records import RunStatus, Status
from rigctl.report.export.ci import bencher, benchmark_action, has_smaller, suite_of
from rigctl.report.export.formats import BINARY, FORMATS
from rigctl.report.export.slurm import drain_commands
from rigctl.report.printers.junit import junit
from rigctl.rig.fields import NODE_NAME
from rigctl.runner.resume import Fate, fate
from rigctl.store import Store, open_store
from rigctl.store.rows import refusal
from rigctl.store.run_files import packed, take

Format: TypeAlias = Literal[
    "csv",
    "json",
    "md",
    "parquet",
    "rigctl",
    "junit",
    "openmetrics",
    "bencher",
    "benchmark-action",
    "benchmark-action-smaller",
    "slurm",
]
LevelName: TypeAlias = Literal["cells", "pairs", "flows", "intervals", "bins", "histogram"]
_MOST_BYTES: Final = 64 * 2**20
"""Size limit of a file of iperf3: an hour of a hundred flows."""


@with_filters
def export(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN…",
            help="Id of the run, its beginning, or latest~N (default: latest); several for rows and rigctl.",
            autocompletion=run_ids,
        ),
    ] = None,
    kind: Annotated[Format, typer.Option("--format", "-f", help="Write this format.")] = "csv",
    level: Annotated[LevelName, typer.Option("--level", "-l", help="Choose what a row stands for.")] = "pairs",
    filters: Filters = ANY_RUN,
    output: OutputFile = None,
    store: StoreAddress = None,
) -> None:
    """Write the data of runs for other systems, or whole runs for another store.

    csv, json, md, parquet: rows of all runs that are named or fit the filters; the column `run` tells them apart
    (docs/reference/columns.md). --level says what a row is: a test (`cells`), a pair (`pairs`), a flow (`flows`), an
    interval (`intervals`), a bin (`bins`) or a bucket (`histogram`). junit: what was measured and expected;
    openmetrics: figures of tests and pairs; bencher, benchmark-action (goodput, bigger is better) and
    benchmark-action-smaller (round trips and loss): figures of tests for services that track benchmarks
    (docs/how-to/ci.md); slurm: a command for each slow node of a mesh, which drains it (docs/how-to/slurm.md); rigctl:
    whole runs, for `rigctl import`.
    """
    if output is None and kind in {*BINARY, "rigctl"}:
        raise InputError(f"export: {kind} is a binary format. Name a file, as in -o run.{kind}")
    with open_store(store, create=False) as opened:
        chosen = _chosen(opened, runs or [], filters)
        if kind == "rigctl":
            content = _whole(opened, chosen)
        elif kind in FORMATS:
            rows = (row for run in chosen for row in _rows(opened, run, Level[level.upper()]))
            content = FORMATS[kind](rows, Level[level.upper()])
        elif len(chosen) == 1:
            content = _of_run(opened, chosen[0], kind)
        else:
            raise InputError(f"export: {kind} has one run, not {len(chosen)}. Name one, or give another format")
    if output is not None:
        write_whole(output, content)
        return
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _chosen(opened: Store, names: list[str], filters: Filters) -> list[str]:
    """Return the ids of the runs that are named, or that fit the filters, or of the latest."""
    if filters == ANY_RUN:
        return list(dict.fromkeys(opened.run_id(name) for name in names)) or [opened.run().run]
    if names:
        raise InputError(f"export: RUN and {filters} are given. Give one of them")
    stored, damaged = stored_runs(opened)
    for message in damaged:
        print(f"left out: {printable_lines(message)}", file=sys.stderr)
    if chosen := [run.info.run for run in stored if filters.fit(run)]:
        return chosen
    raise InputError(f"export: no run of {len(stored)} fits {filters}. `rigctl runs` lists them")


def _whole(opened: Store, chosen: list[str]) -> bytes:
    """Return the runs as they are stored, as one file."""
    for run in chosen:
        if opened.run(run).status is RunStatus.RUNNING and fate(opened.controller(run)) is Fate.ALIVE:
            raise InputError(f"run {run} is still running. Export it when it has ended")
    return packed(opened, chosen)


def _rows(opened: Store, run: str, level: Level) -> list[Row]:
    info = opened.run(run)
    whole = level in (Level.INTERVALS, Level.BINS)
    return load(info, opened.repetitions(info.run, series=True if whole else sampled(info.plan))).rows(level)


def _of_run(opened: Store, run: str, kind: Format) -> bytes:
    info = opened.run(run)
    view = RunView(info, opened.repetitions(info.run, series=sampled(info.plan)))
    if kind == "openmetrics":
        with extra("openmetrics", "export --format openmetrics"):
            from rigctl.report.export import openmetrics

        return openmetrics.render(view)
    if kind == "junit":
        return junit([suite_of(view)]).encode()
    if kind == "bencher":
        return bencher(view)
    if kind == "slurm":
        commands, notes = drain_commands(view)
        print(*map(printable_lines, notes), sep="\n", end="\n" * bool(notes), file=sys.stderr)
        return "".join(f"{command}\n" for command in commands).encode()
    smaller = kind == "benchmark-action-smaller"
    if not smaller and has_smaller(view):
        print("round trips or loss too: `--format benchmark-action-smaller` has them", file=sys.stderr)
    return benchmark_action(view, smaller=smaller)


def import_runs(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE…", help="Files of `rigctl export --format rigctl`, or JSON of `iperf3 -J`."),
    ],
    kind: Annotated[Literal["rigctl", "iperf3"], typer.Option("--format", "-f", help="Read this format.")] = "rigctl",
    nodes: Annotated[
        list[str] | None,
        typer.Option("--node", metavar="ADDRESS=NAME", help="iperf3: name of the node with this address; repeatable."),
    ] = None,
    store: StoreAddress = None,
) -> None:
    """Store the runs of files that `rigctl export --format rigctl` wrote, or results of iperf3 as a run.

    rigctl: a run that the store already has stays unchanged; one that cannot be read is left out and named. FILE may be
    any store, too. iperf3: all files become one run; files with the same settings and pair are repetitions of one test,
    and the files of both ends of a test are joined (docs/how-to/compare.md). If one of them is damaged, nothing is
    stored.
    """
    if kind == "iperf3":
        reports = [report for path in files for report in reports_of(str(path), _read(path))]
        run = imported(reports, _node_names(nodes or []))
        with open_store(store) as opened:
            stored = _put(opened, run)
            print(f"{stored}: imported")
            if opened.run_id("latest") != stored:
                print(f"The store has later runs: `rigctl show {stored}` shows this one", file=sys.stderr)
        return
    if nodes:
        raise InputError("import: --node is for --format iperf3 only")
    left_out, kept = list[str](), 0
    with open_store(store) as opened:
        for taken in take(opened, files):
            kept += not taken.left_out
            if taken.left_out:
                left_out.append(taken.left_out)
            elif taken.new:
                print(f"{taken.run}: imported")
            else:
                added = f"; added {', '.join(taken.added)}" if taken.added else ""
                print(f"{taken.run}: was there already{added}")
    if len(left_out) == 1 and not kept:
        raise InputError(f"{left_out[0]}. Nothing was imported")
    for why in left_out:
        print(f"left out: {printable_lines(why)}", file=sys.stderr)
    if left_out:
        raise InputError(f"import: {len(left_out)} of {len(left_out) + kept} were left out")


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path}: has more than {_MOST_BYTES >> 20} MiB. Nothing was imported")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read: {reason}. Nothing was imported") from error


def _node_names(nodes: list[str]) -> dict[str, str]:
    """Return the name for each address of `--node`."""
    names = dict(text.split("=", 1) for text in nodes if "=" in text)
    for text in nodes:
        if not NODE_NAME.fullmatch(text.partition("=")[2]):
            raise InputError(
                f'--node "{text}": expected ADDRESS=NAME, as in 10.0.0.1=pi1, a name of letters, digits, - and _'
            )
    if len(set(names.values())) < len(names):
        raise InputError("--node: two addresses have the same name. Give each node a name of its own")
    return names


def _put(opened: Store, result: Imported) -> str:
    """Store an imported run whole, or not at all. Return its id. Raise `InputError` for an impossible value."""
    for place, repetition in zip(result.places, result.repetitions, strict=True):
        if (why := refusal(repetition)) is not None:
            raise InputError(f"{place}: has an impossible value: {why}. Nothing was imported")
    run = opened.begin(result.plan, result.versions, result.facts, result.started_at)
    try:
        opened.add(run, *result.repetitions)
        complete = all(repetition.status is Status.OK for repetition in result.repetitions)
        opened.finish(run, RunStatus.COMPLETE if complete else RunStatus.PARTIAL, result.ended_at)
        opened.repetitions(opened.run(run).run)
    except BaseException:
        opened.remove(run)
        raise
    return run
