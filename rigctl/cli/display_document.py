"""What `display --json` prints, as a model: the JSON Schema follows from it."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from rigctl.cli.json_model import Model
from rigctl.display.folder import Published
from rigctl.display.state import State


class DisplayRun(Model):
    """A run that was published on this machine since it was started."""

    user: str
    fate: Literal["running", "silent", "died", "ended"] = Field(
        description="silent: nothing for 10 s, its process is stopped or hangs; died: its process is gone."
    )
    state: State


class DisplayDocument(Model):
    """What runs publish of themselves, the earliest first."""

    version: Literal[1] = 1
    runs: list[DisplayRun]


def document(runs: Sequence[Published]) -> str:
    """What `--json` prints."""
    made = [DisplayRun(user=each.user, fate=each.fate.value, state=each.state) for each in runs]
    return DisplayDocument(runs=made).model_dump_json(indent=2)
