"""`rigctl runs`: the stored runs; `rigctl runs rm`: remove some of them."""

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from rigctl.cli.common import Debug, Verbose, set_up
from rigctl.cli.completion import run_ids
from rigctl.cli.options import Json, StoreAddress

if TYPE_CHECKING:
    from rigctl.cli.runs_table import Listed
    from rigctl.store import Store

app = typer.Typer(invoke_without_command=True)


@app.callback()
def runs(
    ctx: typer.Context,
    store: StoreAddress = None,
    as_json: Json = False,
    debug: Debug = False,
    verbose: Verbose = 0,
) -> None:
    """List the stored runs, the earliest first. `runs rm` removes some."""
    set_up(debug=debug, verbose=verbose)
    if ctx.invoked_subcommand is None:
        _list(store, as_json=as_json)


@app.command()
def rm(
    ctx: typer.Context,
    names: Annotated[
        list[str],
        typer.Argument(metavar="RUN…", help="Ids of runs, or their beginnings.", autocompletion=run_ids),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    store: StoreAddress = None,
) -> None:
    """Remove runs from the store, with all that was measured in them. Reports that were written stay."""
    from rigctl.errors import InputError
    from rigctl.runner.resume import Fate, fate
    from rigctl.store import open_store

    address = store or (ctx.parent.params.get("store") if ctx.parent is not None else None)
    with open_store(address, create=False) as opened:
        chosen = list(dict.fromkeys(opened.run_id(name) for name in names))
        for run in chosen:
            if fate(opened.controller(run)) is Fate.ALIVE:
                raise InputError(f"run {run} is still running. Wait for it or stop it")
        if not yes and not _agreed(chosen):
            raise InputError("nothing was removed")
        for run in chosen:
            opened.remove(run)
            print(f"{run}: removed")


def _agreed(chosen: list[str]) -> bool:
    from rigctl.errors import InputError

    if not sys.stdin.isatty():
        raise InputError(f"runs rm: standard input is no terminal. Give --yes to remove {', '.join(chosen)}")
    return typer.confirm(f"Remove {', '.join(chosen)}?")


def _list(address: str | None, *, as_json: bool) -> None:
    from rigctl.cli.runs_table import print_runs
    from rigctl.errors import InputError
    from rigctl.store import NoStoreError, open_store

    try:
        with open_store(address, create=False) as opened:
            listed, damaged = _listed(opened)
    except NoStoreError:
        listed, damaged = [], []
    if as_json:
        from rigctl.cli.documents import runs_json

        print(runs_json(listed, damaged))
    elif listed or not damaged:
        print_runs(listed)
    if damaged:
        raise InputError("\n".join(damaged))


def _listed(opened: "Store") -> "tuple[list[Listed], list[str]]":
    """The runs that can be read, and what is wrong with the others."""
    from rigctl.cli.runs_table import Listed
    from rigctl.errors import InputError
    from rigctl.records import RunStatus
    from rigctl.runner.resume import fate

    measured, now, found, damaged = opened.measured(), time.time(), [], []
    for run in opened.run_ids():
        try:
            info = opened.run(run)
        except InputError as error:
            damaged.append(str(error))
            continue
        controller = opened.controller(run) if info.status is RunStatus.RUNNING else None
        found.append(Listed(info, measured.get(run, {}), fate(controller), now))
    return found, damaged
