"""Nights as a user has them: installed, run on a real rig, hung, refused, and what is left of each."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from processes import all_commands, end, eventually, program
from user import User

from rigctl.base.errors import InputError
from rigctl.records import RunStatus
from rigctl.store import open_store

SCENARIO = "title: nightly\nrig: gigablox\npairs: [pi1 -> pi2]\nduration: {}\nmax_skew: 1s\n"
DOCS = Path(__file__).parents[2] / "docs"


class Sleeper(User):
    """Someone without systemd, with folders of their own."""

    def __init__(self, folder: Path, duration: str = "600ms", host: User | None = None) -> None:
        super().__init__(folder, host)
        systemctl = program(folder / "tools" / "systemctl", "exit 1")
        self.environment["PATH"] = f"{systemctl.parent}:{os.environ['PATH']}"
        for name in ("CONFIG", "STATE"):
            self.environment[f"XDG_{name}_HOME"] = str(folder / name.lower())
        (folder / "quick.yaml").write_text(SCENARIO.format(duration))

    def install(self, *words: str, code: int = 0) -> str:
        told = f"cat >>{self.folder}/told.md"
        given = ("quick.yaml", "--rig", "gigablox", "--at", "02:30", "--notify", told, "--name", "lab", *words)
        return self.rigctl("nightly", "install", *given, code=code)

    @contextmanager
    def running_night(self, *words: str) -> Iterator["subprocess.Popen[str]"]:
        self.install(*words)
        night = self.start("nightly", "run", "lab")
        try:
            yield night
        finally:
            end(night)

    @property
    def told(self) -> str:
        return (self.folder / "told.md").read_text() if (self.folder / "told.md").exists() else ""

    @property
    def began_to_measure(self) -> bool:
        """Whether a run is in the store: its agents are there somewhat earlier."""
        try:
            with open_store(str(self.folder / "store.db"), create=False) as store:
                return bool(store.run_ids())
        except InputError:
            return False

    def night(self) -> dict[str, Any]:
        """The last night, as a program sees it."""
        status = json.loads(self.rigctl("nightly", "status", "--json"))
        jsonschema.validate(status, json.loads((DOCS / "schemas" / "nightly-status.schema.json").read_text()))
        last: dict[str, Any] = status["nightlies"][0]["nights"][0]
        return last


@pytest.fixture
def user(tmp_path: Path, host: User) -> Sleeper:
    return Sleeper(tmp_path, host=host)


def test_nights_and_their_site_from_their_installation_to_their_removal(user: Sleeper) -> None:
    out = user.install("--publish", "site")
    assert "Add this line to your crontab (crontab -e)" in out
    assert "30 2 * * * " in out
    assert " -m rigctl nightly run lab\n" in out
    assert "lab: has not run yet; next: " in user.rigctl("nightly", "status")

    state = user.folder / "state/rigctl/nightly/lab.json"
    state.write_text('{"installed_at": 1, "looked_until": NaN, "pending": []}')
    assert json.loads(user.rigctl("nightly", "status", "--json"))["damaged"] != []
    said = user.rigctl("nightly", "run", "lab")
    assert "lab.json is damaged" in said
    assert "nothing new" in said
    night = user.night()
    assert (night["outcome"], night["reason"]) == ("quiet", None)
    assert str(night["run"]) in user.rigctl("nightly", "status", "lab")
    assert user.told == ""
    front = user.folder / "site/index.html"
    assert f"runs/{night['run']}.html" in front.read_text()
    assert "Next expected " in front.read_text()

    (user.folder / "quick.yaml").write_text(SCENARIO.format("600ms") + 'expect: {goodput: ">= 2G"}\n')
    assert "is damaged" not in user.rigctl("nightly", "run", "lab", code=1)
    night = user.night()
    assert (night["outcome"], night["reason"]) == ("not-as-expected", None)
    (missed,) = night["unmet"]
    assert missed["bound"] == "goodput >= 2G"
    assert "expected >= 2G" in user.told
    assert f'class="night unexpected" href="runs/{night["run"]}.html"' in front.read_text()
    (user.folder / "told.md").unlink()

    (user.folder / "quick.yaml").write_text(SCENARIO.format("600ms") + "titel: broken\n")
    user.rigctl("nightly", "run", "lab", code=3)
    assert user.night()["outcome"] == "failed"
    assert "the night failed: " in user.told
    assert 'unknown key "titel". Did you mean "title"?' in user.told
    assert "unknown key" in front.read_text()

    (user.folder / "quick.yaml").write_text(SCENARIO.format("600ms"))
    (user.folder / "site/.rigctl-site/site.json").unlink()
    assert "the site was not published: " in user.rigctl("nightly", "run", "lab", code=3)
    assert "holds files that are of no site of rigctl" in user.told
    assert user.night()["outcome"] == "quiet"

    assert "config/rigctl/nightly/lab.yaml" in user.rigctl("nightly", "remove", "lab")
    assert "No nightly is installed" in user.rigctl("nightly", "status")
    assert 'no nightly "lab"' in user.rigctl("nightly", "run", "lab", code=2)


def test_a_night_that_hangs_is_ended_and_its_rig_is_left_without_a_trace(tmp_path: Path) -> None:
    user = Sleeper(tmp_path, "60s")
    with user.running_night("--deadline", "9s", "--wait", "0s") as night:
        eventually(lambda: user.began_to_measure)
        for hung in [pid for pid, _ in all_commands() if _is_run(pid, user)]:
            os.kill(hung, signal.SIGSTOP)  # it cannot even heed SIGTERM
        out, errors = night.communicate(timeout=90)
    assert night.returncode == 3, errors
    assert "the night was ended at its deadline: not finished after 9 s, so it was ended" in out
    assert "; last in its log: " in out
    last = user.night()
    assert last["outcome"] == "overdue"
    assert last["run"] is not None
    assert "not finished after 9 s" in user.told
    eventually(lambda: not user.processes())


def _is_run(pid: int, user: User) -> bool:
    """Whether it is the run that a night of this user started."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b"run" in words and b"--log-file" in words and str(user.folder).encode() in b" ".join(words)
    except OSError:
        return False


def test_a_night_that_is_ended_ends_its_run(tmp_path: Path) -> None:
    user = Sleeper(tmp_path, "60s")
    with user.running_night() as night:
        eventually(lambda: len(user.agents()) >= 2)
        night.terminate()
        night.communicate(timeout=60)
    assert night.returncode == 130
    eventually(lambda: not user.processes())
    assert user.night()["reason"] == "rigctl nightly was ended by a signal"


def test_a_night_that_is_killed_alone_ends_its_run(tmp_path: Path) -> None:
    user = Sleeper(tmp_path, "60s")
    with user.running_night() as night:
        eventually(lambda: user.began_to_measure)
        night.kill()
        night.communicate(timeout=60)
    eventually(lambda: not user.processes())
    with open_store(str(user.folder / "store.db"), create=False) as store:
        assert [info.status for info in store.runs()] == [RunStatus.INTERRUPTED]


def test_a_rig_that_is_in_use_all_the_time_is_the_nights_result(user: Sleeper) -> None:
    user.install("--wait", "1s")
    (user.folder / "long.yaml").write_text(SCENARIO.format("60s"))
    holder = user.start("run", "long.yaml", "--no-report")
    try:
        eventually(lambda: len(user.agents()) >= 2)
        assert "the rig was in use all the time: pi1: in use by" in user.rigctl("nightly", "run", "lab", code=3)
    finally:
        holder.terminate()
        holder.communicate(timeout=30)
    assert user.night()["outcome"] == "busy"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--at", "2:60"], '--at "2:60": expected a time of day, as 02:30'),
        (["--notify", "https://anna:hidden@x.org/"], "--notify: holds a password"),
        (["--notify", "https://x.org/${HOOK}"], "the secret HOOK is neither in the environment nor in the file"),
    ],
)
def test_a_mistake_installs_nothing(user: Sleeper, words: list[str], expected: str) -> None:
    out = user.install(*words, code=2)
    assert expected in out
    assert "hidden" not in out
    assert not list(user.folder.glob("config/**/*.yaml"))
