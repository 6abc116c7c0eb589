"""`rigctl runs`: the stored runs."""

from rigctl.cli.options import StoreAddress


def runs(store: StoreAddress = None) -> None:
    """List the stored runs, the earliest first."""
    import time

    from rich.console import Console

    from rigctl.report.listing import print_runs
    from rigctl.store import open_store

    with open_store(store, create=False) as opened:
        print_runs(opened.runs(), opened.measured(), time.time(), Console())
