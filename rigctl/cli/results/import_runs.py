"""Store the runs of files that `rigctl export --format rigctl` wrote, or results of iperf3 as a run.

rigctl: a run that the store already has stays unchanged; a run that cannot be read is left out and named. FILE may
also be a store. iperf3: all files become one run; files with the same settings and pair are repetitions of one test,
and the files of both ends of a test are joined (docs/how-to/compare.md). If a file is damaged, nothing is stored.
"""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from rigctl.base.errors import InputError
from rigctl.base.texts import printable_lines
from rigctl.cli.options import StoreAddress
from rigctl.cli.stored_runs import read_view, store_answer
from rigctl.measure.iperf3_files import RunFromFiles, import_reports, reports_of
from rigctl.records import ANSWER, RunStatus, Status
from rigctl.rig.fields import NODE_NAME
from rigctl.store import Store, open_store
from rigctl.store.rows import refusal
from rigctl.store.run_files import take

_MOST_BYTES: Final = 64 * 2**20
"""Size limit of an iperf3 file; a measurement of one hour with a hundred flows fits."""


def import_runs(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE…", help="Files that `rigctl export --format rigctl` or `iperf3 -J` wrote."),
    ],
    kind: Annotated[Literal["rigctl", "iperf3"], typer.Option("--format", "-f", help="Read this format.")] = "rigctl",
    nodes: Annotated[
        list[str] | None,
        typer.Option("--node", metavar="ADDRESS=NAME", help="iperf3: name of the node with this address; repeatable."),
    ] = None,
    store: StoreAddress = None,
) -> None:
    if kind == "iperf3":
        reports = [report for path in files for report in reports_of(str(path), _read(path))]
        run = import_reports(reports, _node_names(nodes or []))
        with open_store(store) as opened:
            stored = _put(opened, run)
            _store_answer(opened, stored)
            print(f"{stored}: imported")
            if run.plan.notes:
                print(printable_lines(run.plan.notes), file=sys.stderr)
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
                _store_answer(opened, taken.run)
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


def _store_answer(opened: Store, run: str) -> None:
    """Store the short answer of an imported run that has none: an old run, or a run of another program."""
    info = opened.run(run)
    if ANSWER in info.tags or info.status is RunStatus.RUNNING:
        return
    from rigctl.report.comparison import report_of  # most files need no report

    with suppress(InputError):  # `rigctl show` tells why a run has no report
        store_answer(opened, run, report_of(read_view(opened, run))[0])


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path}: has more than {_MOST_BYTES >> 20} MiB. Nothing was imported")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read: {reason}. Nothing was imported") from error


def _node_names(nodes: list[str]) -> dict[str, str]:
    names = dict(text.split("=", 1) for text in nodes if "=" in text)
    for text in nodes:
        if not NODE_NAME.fullmatch(text.partition("=")[2]):
            raise InputError(
                f'--node "{text}": expected ADDRESS=NAME, as in 10.0.0.1=pi1, a name of letters, digits, - and _'
            )
    if len(set(names.values())) < len(names):
        raise InputError("--node: two addresses have the same name. Give each node a name of its own")
    return names


def _put(opened: Store, result: RunFromFiles) -> str:
    """Store an imported run completely or not at all, and return its id. Raise `InputError` for an invalid value."""
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
