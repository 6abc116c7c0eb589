"""Measure what seems to have changed once more, at once: `rigctl regress --confirm`, and every night."""

from rich.console import Console

from rigctl.analysis.regressions import Regressions
from rigctl.records import RunPlan
from rigctl.rig.inventory import Rig
from rigctl.store import Store


def confirmed(regressions: Regressions, plan: RunPlan, rig: Rig, store: Store, console: Console) -> Regressions:
    """`regressions` once the tests concerned were measured again, into a run tagged `CONFIRMS`; the same where none is.

    `plan` and `rig` are those of the run, loaded again. What the second measurement contradicts is no longer news.
    Raises `RigError` where the rig could not be had, `Interrupted` where it was interrupted.
    """
    raise NotImplementedError
