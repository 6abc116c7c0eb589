"""Nights as a user has them: installed, run, hung, refused, and what is left of each."""

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jsonschema
import postgres
import pytest
from processes import all_commands, eventually, program
from user import Command, User

from rigctl.base.errors import InputError
from rigctl.nightly.zone import zone_of_machine
from rigctl.records import RunStatus

SCENARIO = "title: nightly\nrig: gigablox\npairs: [pi1 -> pi2]\nduration: 60s\nmax_skew: 1s\n"
DOCS = Path(__file__).parents[2] / "docs"


class Sleeper(User):
    """Someone without systemd, with folders of their own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        systemctl = program(folder / "tools" / "systemctl", "exit 1")
        self.environment["PATH"] = f"{systemctl.parent}:{os.environ['PATH']}"
        for name in ("CONFIG", "STATE"):
            self.environment[f"XDG_{name}_HOME"] = str(folder / name.lower())
        self.measures()

    def measures(self, more: str = "") -> None:
        (self.folder / "quick.yaml").write_text(SCENARIO + more)

    def install(self, *words: str, code: int = 0) -> str:
        told = f"cat >>{self.folder}/told.md"
        given = ("quick.yaml", "--rig", "gigablox", "--at", "02:30", "--notify", told, "--name", "lab", *words)
        return self.rigctl("nightly", "install", *given, code=code)

    @contextmanager
    def running_night(self) -> Iterator[Command]:
        self.install()
        with self.running("nightly", "run", "lab") as night:
            try:
                eventually(lambda: self.began_to_measure)
                yield night
            finally:
                for pid in self.runs:
                    os.kill(pid, signal.SIGKILL)

    @property
    def told(self) -> str:
        return (self.folder / "told.md").read_text() if (self.folder / "told.md").exists() else ""

    @property
    def began_to_measure(self) -> bool:
        """Whether a run is in the store: its agents are there somewhat earlier."""
        try:
            with self.store() as store:
                return bool(store.run_ids())
        except InputError:
            return False

    @property
    def runs(self) -> list[int]:
        return [pid for pid, words in all_commands() if f" --log-file {self.folder}/" in words and " run " in words]

    def night(self) -> dict[str, Any]:
        status = json.loads(self.rigctl("nightly", "status", "--json"))
        jsonschema.validate(status, json.loads((DOCS / "schemas" / "nightly-status.schema.json").read_text()))
        last: dict[str, Any] = status["nightlies"][0]["nights"][0]
        return last


@pytest.fixture
def user(tmp_path: Path) -> Iterator[Sleeper]:
    with Sleeper(tmp_path).replaying() as made:
        yield made


def test_nights_and_their_site_from_their_installation_to_their_removal(user: Sleeper) -> None:
    user.replay.says(undivided=True)
    out = user.install("--publish", "site")
    for part in ("Add this line to your crontab (crontab -e)", "30 2 * * * ", " -m rigctl nightly run lab\n"):
        assert part in out
    zone = zone_of_machine()
    assert f" TZ={zone} " in out
    assert f"every night at 02:30 ({zone}); next: " in out
    for shell in ("Asia/Kolkata", "Australia/Lord_Howe", zone):
        user.environment["TZ"] = str(shell)
        assert re.search(rf"^lab: has not run yet; next: [-\d]+ 02:30 \({zone}\)\.$", user.rigctl("nightly", "status"))
    del user.environment["TZ"]

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

    user.measures('expect: {goodput: ">= 2G"}\n')
    assert "is damaged" not in user.rigctl("nightly", "run", "lab", code=1)
    night = user.night()
    assert (night["outcome"], night["reason"]) == ("not-as-expected", None)
    (missed,) = night["unmet"]
    assert missed["bound"] == "goodput >= 2G"
    assert "expected >= 2G" in user.told
    assert f'class="night unexpected" href="runs/{night["run"]}.html"' in front.read_text()
    (user.folder / "told.md").unlink()

    user.measures("titel: broken\n")
    user.rigctl("nightly", "run", "lab", code=3)
    assert user.night()["outcome"] == "failed"
    assert "the night failed: " in user.told
    assert 'unknown key "titel". Did you mean "title"?' in user.told
    assert "unknown key" in front.read_text()

    (user.folder / "site/.rigctl-site/site.json").unlink()
    assert "the site was not published: " in user.rigctl("nightly", "run", "lab", code=3)
    assert "holds files that belong to no site of rigctl" in user.told

    assert "config/rigctl/nightly/lab.yaml" in user.rigctl("nightly", "remove", "lab")
    assert "No nightly is installed" in user.rigctl("nightly", "status")
    assert 'no nightly "lab"' in user.rigctl("nightly", "run", "lab", code=2)


def test_a_night_that_hangs_is_ended_and_its_rig_is_left_without_a_trace(tmp_path: Path) -> None:
    user = Sleeper(tmp_path)
    with user.running_night() as night:
        (hung,) = user.runs
        os.kill(hung, signal.SIGSTOP)  # it cannot even heed SIGTERM
        os.kill(night.pid, signal.SIGTERM)
        assert night.ended().returncode == 130
        assert user.runs == []
    eventually(lambda: not user.processes())
    assert user.night()["reason"] == "rigctl nightly was ended by a signal"


def test_a_night_that_is_not_finished_at_its_deadline_is_ended_and_told(user: Sleeper) -> None:
    user.replay.says(held=["1"])
    user.install("--deadline", "1s", "--wait", "0s")  # whatever it has come to by then
    reason = "the night was ended at its deadline: the run had not finished after 1 s"
    assert reason in user.rigctl("nightly", "run", "lab", code=3)
    assert user.night()["outcome"] == "overdue"
    assert reason in user.told
    assert user.runs == []


def test_a_night_that_is_killed_alone_ends_its_run(user: Sleeper) -> None:
    user.replay.says(held=["1"])
    with user.running_night() as night:
        os.kill(night.pid, signal.SIGKILL)
        eventually(lambda: not user.runs)
    with user.store() as store:
        assert [info.status for info in store.runs()] == [RunStatus.INTERRUPTED]


def test_a_rig_that_is_in_use_all_the_time_is_the_nights_result(user: Sleeper) -> None:
    user.replay.says(in_use="anna@desk pid 7, since 02:29:59", undivided=True)
    user.install("--wait", "1s")
    assert "the rig was in use all the time: pi1: in use by anna@desk" in user.rigctl("nightly", "run", "lab", code=3)
    assert user.night()["outcome"] == "busy"


def test_a_password_of_the_store_is_in_no_argument_and_in_no_file_but_that_of_the_secrets(user: Sleeper) -> None:
    password = f"my@w/o:r%d {os.getpid()}"
    secrets = user.folder / "secrets"
    secrets.write_text(f"PW='{password}'\n")
    secrets.chmod(0o600)
    user.replay.says(held=["1"])
    with postgres.server() as server:
        server.sql(f"CREATE ROLE anna LOGIN PASSWORD '{password}'", "GRANT CREATE ON SCHEMA public TO anna")
        url = f"postgresql://anna:{{}}@/postgres?host={server.folder}"
        user.install("--store", url.format("${PW}"), "--secrets", str(secrets))
        with user.running("nightly", "run", "lab") as night:
            user.environment["RIGCTL_STORE"] = url.format(quote(password, safe=""))
            eventually(lambda: user.began_to_measure)
            parts = ("anna:", str(server.folder), password)
            shown = [words for _, words in all_commands() if " run " in words]
            assert not [words for words in shown if any(part in words for part in parts)]
            assert len(user.runs) == 1
            user.replay.release()
            assert night.ended().returncode == 0
        assert user.night()["outcome"] == "quiet"
        assert user.night()["run"].rpartition("-")[2] in user.rigctl("runs")
    files = [path for path in user.folder.rglob("*") if path.is_file()]
    assert [path for path in files if password.encode() in path.read_bytes()] == [secrets]


@pytest.mark.parametrize("hidden", ["u:hush@h/db", "u@h/db?password=hush", "u@h/db?p%61ssword=hush", "u:hu@hush@h/db"])
def test_a_store_with_a_password_is_not_installed_and_not_repeated(user: Sleeper, hidden: str) -> None:
    said = user.install("--store", f"postgresql://{hidden}", code=2)
    assert said.startswith("rigctl: ")
    assert "~/.pgpass" in said
    assert said.count("\n") == 1
    assert "hush" not in said
    assert not list(user.folder.glob("config/**/*.yaml"))


def test_a_mistake_installs_nothing(user: Sleeper) -> None:
    said = user.install("--notify", "https://anna:hidden@x.org/", code=2)
    assert said.startswith("rigctl: --notify: holds a password")
    assert "hidden" not in said
    said = user.install("--notify", "https://x.org/${HOOK}", code=2)
    assert "the secret HOOK is neither in the environment nor in the file" in said
    said = user.install("--notify", "https:///services/hidden", code=2)
    assert said.startswith("rigctl: --notify https:///***: expected an address")
    said = user.install("--store", "postgresql://anna:${PW}@db/x", code=2)
    assert "the secret PW is neither in the environment nor in the file" in said
    assert not list(user.folder.glob("config/**/*.yaml"))
