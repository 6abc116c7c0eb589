"""Plans of scenarios that tests write, and error messages about mistakes in such scenarios."""

from pathlib import Path
from typing import Any, Final

import pytest

from rigctl.base.errors import InputError
from rigctl.records import RunPlan
from rigctl.scenario.load import Overrides, load_plan

HEAD: Final = "rig: gigablox\npairs: [pi1 -> pi2]\n"


def planned(folder: Path, text: str = "", *sets: str, head: str = HEAD, **options: Any) -> RunPlan:
    """Return the plan of the scenario in these lines, with `sets` as of --set and other overrides."""
    (folder / "s.yaml").write_text(f"{head}{text}\n")
    return load_plan(str(folder / "s.yaml"), Overrides(sets=sets, **options))[0]


def message(folder: Path, text: str = "", *sets: str, head: str = HEAD, **options: Any) -> str:
    """Return the error message for the scenario in these lines, without the path of its folder."""
    return message_of(folder, f"{head}{text}\n", Overrides(sets=sets, **options), "s.yaml")


def message_of(folder: Path, text: str, overrides: Overrides | None = None, name: str = "t.yaml") -> str:
    """Return the error message for a scenario file with exactly this text, without the path of its folder."""
    path = folder / name
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_plan(str(path), overrides or Overrides())
    return str(caught.value).replace(f"{folder}/", "")
