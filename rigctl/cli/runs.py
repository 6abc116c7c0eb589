"""`rigctl runs`: the stored runs; `rigctl runs rm` and `rigctl runs prune`: remove some of them."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from rigctl.cli import prune
from rigctl.cli.common import Debug, Verbose, set_up
from rigctl.cli.completion import run_ids
from rigctl.cli.options import Json, StoreAddress
from rigctl.cli.runs_filter import OfScenario, OfStatus, OnRig, Since, Until, WithTags

if TYPE_CHECKING:
    from rigctl.cli.runs_filter import Wanted

app = typer.Typer(invoke_without_command=True)


@app.callback()
def runs(
    ctx: typer.Context,
    scenario: OfScenario = None,
    rig: OnRig = None,
    tags: WithTags = None,
    since: Since = None,
    until: Until = None,
    status: OfStatus = None,
    store: StoreAddress = None,
    as_json: Json = False,
    debug: Debug = False,
    verbose: Verbose = 0,
) -> None:
    """List the stored runs, the earliest first. `runs rm` and `runs prune` remove some."""
    from rigctl.cli.runs_filter import wanted

    set_up(debug=debug, verbose=verbose)
    if ctx.invoked_subcommand is None:
        _list(store, wanted(scenario, rig, tags, since, until, status), as_json=as_json)


app.command(name="prune")(prune.prune)


@app.command()
def rm(
    ctx: typer.Context,
    names: Annotated[
        list[str],
        typer.Argument(metavar="RUN…", help="Ids of runs, their beginnings, or latest~N.", autocompletion=run_ids),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    store: StoreAddress = None,
) -> None:
    """Remove runs from the store, with all that was measured in them. Reports that were written stay."""
    from rigctl.base.errors import InputError
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
    from rigctl.base.errors import InputError

    if not sys.stdin.isatty():
        raise InputError(f"runs rm: standard input is no terminal. Give --yes to remove {', '.join(chosen)}")
    return typer.confirm(f"Remove {', '.join(chosen)}?")


def _list(address: str | None, wanted: "Wanted", *, as_json: bool) -> None:
    from rigctl.base.errors import InputError
    from rigctl.cli.runs_table import EMPTY, print_runs
    from rigctl.cli.stored import stored_runs
    from rigctl.store import NoStoreError, open_store

    try:
        with open_store(address, create=False) as opened:
            stored, damaged = stored_runs(opened)
    except NoStoreError:
        stored, damaged = [], []
    chosen = [listed for listed in stored if wanted.takes(listed)]
    if as_json:
        from rigctl.cli.documents import runs_json

        print(runs_json(chosen, damaged))
    elif chosen:
        print_runs(chosen)
    elif not damaged:
        print(f"No run of {len(stored)} fits {wanted}." if stored else EMPTY)
    if damaged:
        raise InputError("\n".join(damaged))
