"""Nights as a user has them: installed, run on a real rig, hung, refused, and what is left of each."""

import fcntl
import json
import os
import signal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from processes import end
from user import User, all_commands, kept_up, waited

from rigctl.base.errors import InputError
from rigctl.records import RunStatus
from rigctl.store import open_store

SCENARIO = "title: nightly\nrig: gigablox\npairs: [pi1 -> pi2]\nduration: {}\n"
DOCS = Path(__file__).parents[2] / "docs"


class Sleeper(User):
    """Someone without systemd, with folders of their own."""

    def __init__(self, folder: Path, duration: str = "400ms") -> None:
        super().__init__(folder)
        tools = folder / "tools"
        tools.mkdir()
        (tools / "systemctl").write_text("#!/bin/sh\nexit 1\n")
        (tools / "systemctl").chmod(0o755)
        self.environment["PATH"] = f"{tools}:{os.environ['PATH']}"
        for name in ("CONFIG", "STATE"):
            self.environment[f"XDG_{name}_HOME"] = str(folder / name.lower())
        (folder / "quick.yaml").write_text(SCENARIO.format(duration))

    def install(self, *words: str, code: int = 0) -> str:
        told = f"cat >>{self.folder}/told.md"
        given = ("quick.yaml", "--rig", "gigablox", "--at", "02:30", "--notify", told, "--name", "lab", *words)
        return self.rigctl("nightly", "install", *given, code=code)

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
def user(tmp_path: Path) -> Sleeper:
    return Sleeper(tmp_path)


def test_a_night_from_its_installation_to_its_removal(user: Sleeper) -> None:
    out = user.install()
    assert "Add this line to your crontab (crontab -e)" in out
    assert "30 2 * * * " in out
    assert " -m rigctl nightly run lab\n" in out
    assert "lab: has not run yet; next: " in user.rigctl("nightly", "status")

    assert "nothing new" in user.rigctl("nightly", "run", "lab")
    night = user.night()
    assert (night["outcome"], night["reason"]) == ("quiet", None)
    assert str(night["run"]) in user.rigctl("nightly", "status", "lab")
    assert user.told == ""

    (user.folder / "quick.yaml").write_text(SCENARIO.format("400ms") + 'expect: {goodput: ">= 2G"}\n')
    user.rigctl("nightly", "run", "lab", code=1)
    night = user.night()
    assert (night["outcome"], night["reason"]) == ("not-as-expected", None)
    (missed,) = night["unmet"]
    assert missed["bound"] == "goodput >= 2G"
    assert "goodput " in missed["text"]
    assert "expected >= 2G" in user.told
    (user.folder / "told.md").unlink()

    (user.folder / "quick.yaml").write_text(SCENARIO.format("400ms") + "titel: broken\n")
    user.rigctl("nightly", "run", "lab", code=3)
    assert user.night()["outcome"] == "failed"
    assert "the night failed: " in user.told
    assert 'quick.yaml:5:1: unknown key "titel". Did you mean "title"?' in user.told

    removed = user.rigctl("nightly", "remove", "lab")
    assert "config/rigctl/nightly/lab.yaml" in removed
    assert "No nightly is installed" in user.rigctl("nightly", "status")
    assert 'no nightly "lab"' in user.rigctl("nightly", "run", "lab", code=2)


def test_a_night_that_hangs_is_ended_and_its_rig_is_left_without_a_trace(tmp_path: Path) -> None:
    user = Sleeper(tmp_path, "60s")
    user.install("--deadline", "9s", "--wait", "0s")
    night = user.start("nightly", "run", "lab")
    try:
        measures = waited(lambda: user.began_to_measure, 7)
        for hung in [pid for pid, _ in all_commands() if _is_run(pid, user)]:
            os.kill(hung, signal.SIGSTOP)  # it cannot even heed SIGTERM
        out, errors = night.communicate(timeout=90)
    finally:
        end(night)
    assert night.returncode == 3, errors
    assert "the night was ended at its deadline: not finished after 9 s, so it was ended" in out
    assert "; last in its log: " in out or not measures
    last = user.night()
    assert last["outcome"] == "overdue"
    assert last["run"] is not None or not measures
    assert "not finished after 9 s" in user.told
    assert waited(lambda: not user.processes(), 30), user.processes()


def _is_run(pid: int, user: User) -> bool:
    """Whether it is the run that a night of this user started."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b"run" in words and b"--log-file" in words and str(user.folder).encode() in b" ".join(words)
    except OSError:
        return False


def test_a_night_that_is_ended_ends_its_run(tmp_path: Path) -> None:
    user = Sleeper(tmp_path, "60s")
    user.install()
    night = user.start("nightly", "run", "lab")
    try:
        assert waited(lambda: len(user.agents()) >= 2, 30)
        night.terminate()
        night.communicate(timeout=60)
    finally:
        end(night)
    assert night.returncode == 130
    assert waited(lambda: not user.processes(), 30), user.processes()
    assert user.night()["reason"] == "rigctl nightly was ended by a signal"


def test_a_night_that_is_killed_alone_ends_its_run(tmp_path: Path) -> None:
    user = Sleeper(tmp_path, "60s")
    user.install()
    night = user.start("nightly", "run", "lab")
    try:
        assert waited(lambda: user.began_to_measure, 30)
        night.kill()
        night.communicate(timeout=60)
    finally:
        end(night)
    assert waited(lambda: not user.processes(), 30), user.processes()
    with open_store(str(user.folder / "store.db"), create=False) as store:
        assert [info.status for info in store.runs()] == [RunStatus.INTERRUPTED]


def test_the_rig_of_the_scenario_is_taken_where_none_is_named(user: Sleeper) -> None:
    user.rigctl("nightly", "install", "quick.yaml", "--at", "02:30", "--name", "lab")
    (status,) = json.loads(user.rigctl("nightly", "status", "--json"))["nightlies"]
    assert status["rig"] == "gigablox"
    (user.folder / "own.yaml").write_text("nodes:\n  a: {address: 192.0.2.1}\n  b: {address: 192.0.2.2}\n")
    (user.folder / "quick.yaml").write_text("rig: own.yaml\npairs: [a -> b]\n")
    user.rigctl("nightly", "install", "quick.yaml", "--at", "02:30", "--name", "lab")
    (status,) = json.loads(user.rigctl("nightly", "status", "--json"))["nightlies"]
    assert status["rig"] == str(user.folder / "own.yaml")


def test_a_damaged_state_is_told_once_and_the_night_goes_on(user: Sleeper) -> None:
    user.install()
    state = user.folder / "state/rigctl/nightly/lab.json"
    state.write_text('{"installed_at": 1, "looked_until": NaN, "pending": []}')
    assert json.loads(user.rigctl("nightly", "status", "--json"))["damaged"] != []
    assert "lab.json is damaged" in user.rigctl("nightly", "run", "lab")
    assert "is damaged" not in user.rigctl("nightly", "run", "lab")


def test_a_rig_that_is_in_use_all_the_time_is_the_nights_result(user: Sleeper) -> None:
    user.install("--wait", "1s")
    with kept_up(user):
        (user.folder / "long.yaml").write_text(SCENARIO.format("60s"))
        holder = user.start("run", "long.yaml", "--no-report")
        try:
            assert waited(lambda: len(user.agents()) >= 2, 30)
            assert "the rig was in use all the time: pi1: in use by" in user.rigctl("nightly", "run", "lab", code=3)
        finally:
            holder.terminate()
            holder.communicate(timeout=30)
    assert user.night()["outcome"] == "busy"


def test_a_site_follows_its_nights_and_what_keeps_it_from_that_is_told(user: Sleeper) -> None:
    user.install("--publish", "site")
    assert "nothing new" in user.rigctl("nightly", "run", "lab")
    run = user.night()["run"]
    front = user.folder / "site/index.html"
    assert f"runs/{run}.html" in front.read_text()
    assert "Next expected " in front.read_text()
    (user.folder / "quick.yaml").write_text(SCENARIO.format("400ms") + 'expect: {goodput: ">= 2G"}\n')
    user.rigctl("nightly", "run", "lab", code=1)
    assert f'class="night unexpected" href="runs/{user.night()["run"]}.html"' in front.read_text()
    assert "Nothing changed" not in front.read_text()
    (user.folder / "quick.yaml").write_text(SCENARIO.format("400ms") + "titel: broken\n")
    user.rigctl("nightly", "run", "lab", code=3)
    assert "unknown key" in front.read_text()

    (user.folder / "quick.yaml").write_text(SCENARIO.format("400ms"))
    (user.folder / "site/.rigctl-site/site.json").unlink()
    said = user.rigctl("nightly", "run", "lab", code=3)
    assert "the site was not published: " in said
    assert "holds files that are of no site of rigctl" in user.told
    assert user.night()["outcome"] == "quiet"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--at", "2:60"], '--at "2:60": expected a time of day, as 02:30'),
        (["--deadline", "soon"], '--deadline "soon"'),
        (["--name", "a b"], '--name "a b": expected letters'),
        (["--notify", "https://anna:hidden@x.org/"], "--notify: holds a password"),
        (["--header", "Authorization: hidden"], "--header Authorization: a secret."),
        (["--notify", "https://x.org/${HOOK}"], "the secret HOOK is neither in the environment nor in the file"),
        (["--store", "postgresql+psycopg://rig:hidden@db/x"], "--store: holds a password"),
        (["--rig", "nolab"], "nolab"),
    ],
)
def test_a_mistake_installs_nothing(user: Sleeper, words: list[str], expected: str) -> None:
    out = user.install(*words, code=2)
    assert expected in out
    assert "hidden" not in out
    assert not list(user.folder.glob("config/**/*.yaml"))


def test_one_night_at_a_time(user: Sleeper) -> None:
    user.install()
    (user.folder / "state/rigctl/nightly").mkdir(parents=True, exist_ok=True)
    with (user.folder / "state/rigctl/nightly/lab.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "rigctl: nightly lab is still running." in user.rigctl("nightly", "run", "lab", code=3)
