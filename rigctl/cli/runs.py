"""`rigctl runs`: the stored runs."""

from rigctl.cli.options import StoreAddress


def runs(store: StoreAddress = None) -> None:
    """List the stored runs, the earliest first; those that can't be read are named behind them."""
    import time

    from rich.console import Console

    from rigctl.errors import InputError
    from rigctl.report.printers.runs_list import print_runs
    from rigctl.store import open_store

    with open_store(store, create=False) as opened:
        infos, damaged = [], []
        for run in opened.run_ids():
            try:
                infos.append(opened.run(run))
            except InputError as error:
                damaged.append(str(error))
        if infos or not damaged:
            print_runs(infos, opened.measured(), time.time(), Console())
    if damaged:
        raise InputError("\n".join(damaged))
