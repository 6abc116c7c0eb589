"""Disks that fill up, under the controller and under a node: one message, nothing stored is lost, nothing is left."""

import os
import random
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from fire import CELLS, COMMAND_S, CONDITIONS, Ground, ground, whole
from processes import mounted
from torture import SEED, TIMES, told
from user import User, ended

FILLED = TIMES // 2  # of each kind
SCENARIO = f"{CELLS}repeat: 1\n{CONDITIONS}"
HOME = "/run/rigctl/home/n1"
ELSEWHERE = ("/tmp", "/var/tmp", "/dev/shm")  # in the namespace of the rig alone
pytestmark = [
    pytest.mark.torture,
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts file systems"),
    pytest.mark.timeout(0),
]


def run(made: Ground, *words: str) -> tuple[int, str]:
    """The code and the messages of a run that ends by itself."""
    done = ended(made.run_words(*words), made.user.folder, made.user.environment, COMMAND_S)
    errors = done.stderr.decode()
    (made.user.folder / "errors").write_text(errors)
    assert "Traceback" not in errors
    return done.returncode, errors


def test_a_store_on_a_full_disk(user: User) -> None:
    chance, full = random.Random(SEED), 0
    with mounted(user.folder / "full", "size=4m") as disk:
        user.environment["RIGCTL_STORE"] = str(disk / "store.db")
        with ground(user, SCENARIO) as made:
            expected = whole(made)
            for _ in range(FILLED):
                _sized(disk, f"{chance.randrange(16, 400, 4)}k")
                code, errors = run(made)
                if code != 0:
                    assert f"rigctl: store {made.store} cannot be " in errors.splitlines()[-1]
                    full += 1
                _sized(disk, "4m")
                made.aftermath()
                made.complete()
                made.aftermath()
                made.same_as(expected)
                made.fresh()
                told("so far", full=full)
    told("full disk under the store", seed=SEED, tried=FILLED, full=full)
    assert full > FILLED / 4


def test_a_report_on_a_full_disk(user: User) -> None:
    with mounted(user.folder / "full", "size=256k") as disk, ground(user, SCENARIO) as made:
        expected = whole(made)
        for number in range(FILLED):
            with (disk / "filling").open("wb") as file:
                file.truncate(0)
                os.posix_fallocate(file.fileno(), 0, (256 - 4 * (number % 8)) * 1024)
            code, errors = run(made, "--report", "full/page.html")
            assert code == 3
            assert "No space left on device" in errors
            assert f"The run is stored: rigctl report {made.run_id()} -o FILE.html" in errors
            assert [path.name for path in disk.iterdir()] == ["filling"]
            (disk / "filling").unlink()
            made.aftermath()
            made.same_as(expected)
            user.rigctl("report", str(made.run_id()), "-o", "full/page.html", deadline_s=COMMAND_S)
            assert (disk / "page.html").read_text().rstrip().endswith("</html>")
            (disk / "page.html").unlink()
            made.fresh()
        told("full disk under the report", seed=SEED, full=FILLED)


def test_a_node_whose_disk_is_full_from_the_start(user: User) -> None:
    with ground(user, SCENARIO) as made:
        made.place = replace(made.place, homes={**made.place.homes, "all": "/tmp"})
        made.place.script(f"mount -t tmpfs -o size=160k rigctl-fire {HOME}")
        for place in ELSEWHERE:
            made.place.script(f"mount -t tmpfs -o size=1m,mode=1777 rigctl-fire {place}")
        expected = whole(made)
        _fill(made, HOME)
        made.place.script(f"rm -rf {HOME}/.cache")
        _fill(made, HOME)
        made.settle()
        for _ in range(FILLED):
            made.complete()  # the agent is kept elsewhere, and removed
            made.aftermath()
            made.same_as(expected)
            made.fresh()
        for place in ELSEWHERE:
            _fill(made, place)
        made.settle()
        for _ in range(FILLED):
            code, errors = run(made)
            assert code == 3
            assert "n1: no folder to put the agent in: " in errors
            made.aftermath()
        for place in ELSEWHERE:
            made.place.script(f"rm {place}/filling")
        made.settle()
        made.complete()
        made.aftermath()
        made.same_as(expected)
        told("a node whose disk is full", home=FILLED, everywhere=FILLED)


def test_a_node_whose_disk_fills_up_and_empties_during_a_run(user: User) -> None:
    with ground(user, SCENARIO) as made:
        expected = whole(made)
        made.place.script(f"mount -t tmpfs -o size=160k rigctl-fire {HOME}")
        made.complete()  # the agent is there
        made.fresh()
        made.settle()
        chance, refused = random.Random(SEED), 0
        for _ in range(FILLED):
            process = made.begin(*made.run_words())
            while process.is_alive():
                time.sleep(chance.uniform(0.0, 1.0))
                _fill(made, HOME)
                time.sleep(chance.uniform(0.0, 1.0))
                made.place.script(f"rm {HOME}/filling")
            refused += "its old value could not be kept safe" in (made.user.folder / "errors").read_text()
            assert process.exitcode in (0, 3)
            made.aftermath()
            made.complete()
            made.aftermath()
            made.same_as(expected)
            made.fresh()
        told("a node whose disk fills up", seed=SEED, runs=FILLED, with_a_condition_refused=refused)


def _sized(disk: Path, size: str) -> None:
    # tmpfs(5) refuses a size below what is in use: then it stays as it is.
    subprocess.run(["mount", "-o", f"remount,size={size}", str(disk)], check=False, stderr=subprocess.DEVNULL)


def _fill(made: Ground, folder: str) -> None:
    made.place.script(f"dd if=/dev/zero bs=4k 2>/dev/null >>{folder}/filling; true")
