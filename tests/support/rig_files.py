"""Rig files in tests: from their text to a rig, or to the message that refuses them."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from rigctl.base.errors import InputError
from rigctl.rig.inventory import Rig
from rigctl.rig.schema import load_rig


def rig_from(folder: Path, text: str, sets: Sequence[str] = ()) -> Rig:
    path = folder / "r.yaml"
    path.write_text(text)
    return load_rig(str(path), sets=sets)


def message(folder: Path, text: str, sets: Sequence[str] = ()) -> str:
    with pytest.raises(InputError) as caught:
        rig_from(folder, text, sets)
    return str(caught.value).replace(f"{folder}/", "")
