"""A run as a site has it."""

from collections.abc import Mapping
from dataclasses import dataclass

from rigctl.records import CONFIRMS, RunStatus, Unmet
from rigctl.site.names import Course


@dataclass(frozen=True, slots=True)
class MadeRun:
    """A run as the site has it. `made_from`: a digest of all that its page depends on; `state`: of the run alone;
    `body_from`: of all but the links to the pages around it.
    """

    run: str
    made_from: str
    state: str
    scenario: str
    rig: str
    title: str
    status: RunStatus
    started_at: float
    ended_at: float | None
    tests: int
    answer: str  # the sentence on top of its page
    level: str  # of that finding
    tags: Mapping[str, str]  # all, also rigctl's own
    body_from: str = ""
    unmet: tuple[Unmet, ...] = ()

    @property
    def course(self) -> Course:
        return Course(self.scenario, self.rig)

    @property
    def is_night(self) -> bool:
        """Whether it is no second measurement."""
        return CONFIRMS not in self.tags
