"""Plans of scenarios that tests write, and the message about a mistake in one."""

from pathlib import Path
from typing import Any, Final

import pytest

from rigctl.base.errors import InputError
from rigctl.records import RunPlan
from rigctl.scenario.load import Overrides, load_plan

HEAD: Final = "rig: gigablox\npairs: [pi1 -> pi2]\n"


def planned(folder: Path, text: str = "", *sets: str, head: str = HEAD, **options: Any) -> RunPlan:
    """Return the plan of a scenario s.yaml of these lines, with `--set` options and others."""
    (folder / "s.yaml").write_text(f"{head}{text}\n")
    return load_plan(str(folder / "s.yaml"), Overrides(sets=sets, **options))[0]


def message(folder: Path, text: str = "", *sets: str, head: str = HEAD, **options: Any) -> str:
    """Return what is said of the mistakes in a scenario of these lines, without its folder."""
    return message_of(folder, f"{head}{text}\n", Overrides(sets=sets, **options), "s.yaml")


def message_of(folder: Path, text: str, overrides: Overrides | None = None, name: str = "t.yaml") -> str:
    """Return what is said of the mistakes in a scenario file of exactly this text, without its folder."""
    path = folder / name
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_plan(str(path), overrides or Overrides())
    return str(caught.value).replace(f"{folder}/", "")
