"""A disk that fills up under the store: one message, nothing stored is lost, nothing is left."""

import random
import subprocess
from pathlib import Path

from fire import CELLS, CONDITIONS, MARKS, ground, whole
from processes import mounted
from torture import SEED, TIMES, told
from user import User

FILLED = TIMES // 2
SCENARIO = f"{CELLS}repeat: 1\n{CONDITIONS}"
pytestmark = MARKS


def test_a_store_on_a_full_disk(user: User) -> None:
    chance, full = random.Random(SEED), 0
    with mounted(user.folder / "full", "size=4m") as disk:
        user.environment["RIGCTL_STORE"] = str(disk / "store.db")
        with ground(user, SCENARIO) as made:
            expected = whole(made)
            for _ in range(FILLED):
                _sized(disk, f"{chance.randrange(16, 400, 4)}k")
                code, errors = made.run()
                (user.folder / "errors").write_text(errors)
                assert "Traceback" not in errors
                if code != 0:
                    assert f"rigctl: store {made.store} cannot be " in errors.splitlines()[-1]
                    full += 1
                _sized(disk, "4m")
                made.aftermath()
                made.ends_as(expected)
                made.fresh()
                told("so far", full=full)
    told("full disk under the store", seed=SEED, tried=FILLED, full=full)
    assert full > FILLED / 4


def _sized(disk: Path, size: str) -> None:
    # tmpfs(5) refuses a size below what is in use: then it stays as it is.
    subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], check=False, stderr=subprocess.DEVNULL)
