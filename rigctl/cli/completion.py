"""What a shell completes: bundled scenarios and rigs, ids of runs. Never fails; where it knows nothing, files do."""

import typer


def scenario_names(incomplete: str) -> list[str]:
    from rigctl.scenario.load import bundled_scenarios

    return [name for name in bundled_scenarios() if name.startswith(incomplete)]


def rig_names(incomplete: str) -> list[str]:
    from rigctl.rig.schema import bundled_rigs

    return [name for name in bundled_rigs() if name.startswith(incomplete)]


def run_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """Those of the store that the command line names, the latest first."""
    from rigctl.base.errors import RigctlError
    from rigctl.store import open_store

    try:
        with open_store(ctx.params.get("store"), create=False) as opened:
            known = [*reversed(opened.run_ids()), "latest", "latest~1"]
            return [run for run in known if run.startswith(incomplete)]
    except RigctlError:
        return []
