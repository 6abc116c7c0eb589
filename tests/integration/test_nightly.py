"""A nightly's messages, to a web server that fails and by commands that do; its units, judged by systemd itself."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from processes import DEADLINE_S, eventually, program

from rigctl.base.errors import RigError
from rigctl.nightly import install, message
from rigctl.nightly.install import service, timer, unit_name
from rigctl.nightly.message import Message, tell
from rigctl.nightly.settings import NightlySettings

TOLD = Message("an-id", "s on r: slower", "**s on r: slower**\n\n| ü |\n", "2026-11-22", "news", "run1")
AT_ONCE = (0.0, 0.0, 0.0)
PACE_S = 0.1
"""Of a server that answers byte by byte."""


@dataclass
class Site:
    """A web server that answers as it was told to, one answer after another; the last one stays."""

    port: int
    answers: list[int | str] = field(default_factory=lambda: [200])
    seen: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook/s3cret"


@pytest.fixture
def site() -> Iterator[Site]:
    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            made.seen.append((self.path, dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
            answer = made.answers.pop(0) if len(made.answers) > 1 else made.answers[0]
            if answer == "hang":
                made.over.wait()
                return
            if answer == "drip":
                while not made.over.wait(PACE_S):
                    self.wfile.write(b"x")
                return
            if answer == "garbage":
                self.wfile.write(b"\x1b[2J no HTTP at all\r\n\r\n")
                return
            self.send_response(int(answer))
            if 300 <= int(answer) < 400:
                self.send_header("Location", "http://127.0.0.1:9/stolen?token=1")
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    made = Site(server.server_port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield made
    made.over.set()
    server.shutdown()
    thread.join(DEADLINE_S)
    server.server_close()


def settings(notify: str, **more: Any) -> NightlySettings:
    return NightlySettings(scenario="s", rig="r", at="02:30", store="/x.db", notify=notify, **more)


def test_a_webhook_gets_json_with_the_markdown(site: Site) -> None:
    tell(TOLD, settings(site.address), {})
    ((path, headers, body),) = site.seen
    assert path == "/hook/s3cret"
    assert headers["Content-Type"] == "application/json"
    assert headers["Idempotency-Key"] == "an-id"
    texts = {"text": TOLD.markdown, "title": TOLD.title, "night": "2026-11-22"}
    assert json.loads(body) == texts | {"id": "an-id", "outcome": "news", "run": "run1"}


def test_or_the_markdown_itself_and_secrets_from_a_file(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "secrets"
    file.write_text("TOKEN=t0ken\nHOOK=s3cret\n")
    file.chmod(0o600)
    more = {"headers": {"Authorization": "Bearer ${TOKEN}"}, "secrets": str(file), "notify_format": "markdown"}
    tell(TOLD, settings(f"http://127.0.0.1:{site.port}/hook/${{HOOK}}", **more), {})
    ((path, headers, body),) = site.seen
    assert (path, headers["Authorization"]) == ("/hook/s3cret", "Bearer t0ken")
    assert headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert body.decode() == TOLD.markdown


@pytest.mark.parametrize("first", [[429, 503], ["garbage", "hang"], [503, "drip"]])
def test_what_fails_twice_is_tried_again(site: Site, first: list[int | str], monkeypatch: pytest.MonkeyPatch) -> None:
    site.answers = [*first, 204]
    # Only an answer that never comes is not waited for.
    limits_s = [0.5 if answer in ("hang", "drip") else DEADLINE_S for answer in site.answers]
    within = message._run_within
    monkeypatch.setattr(message, "_run_within", lambda _, attempt: within(limits_s.pop(0), attempt))
    tell(TOLD, settings(site.address), {}, pauses_s=AT_ONCE, answer_s=DEADLINE_S)
    assert len(site.seen) == 3
    assert {headers["Idempotency-Key"] for _, headers, _ in site.seen} == {"an-id"}


MOVED = ": it has moved to http://127.0.0.1:9. Give that address to --notify"


@pytest.mark.parametrize(
    ("code", "said", "attempts"),
    [
        (500, "500 Internal Server Error (4 attempts)", 4),
        (403, "403 Forbidden", 1),
        (301, f"301 Moved Permanently{MOVED}", 1),
        (307, f"307 Temporary Redirect{MOVED}", 1),
    ],
)
def test_a_failure_is_tried_again_a_refusal_is_final_and_no_redirect_followed(
    site: Site, code: int, said: str, attempts: int
) -> None:
    site.answers = [code]
    with pytest.raises(RigError) as caught:
        tell(TOLD, settings(site.address), {}, pauses_s=AT_ONCE)
    assert str(caught.value) == f"--notify: http://127.0.0.1:{site.port} answered {said}"
    assert len(site.seen) == attempts


def test_a_command_gets_the_markdown_and_the_title(tmp_path: Path) -> None:
    file = tmp_path / "told"
    command = f'cat >"{file}"; echo "$RIGCTL_TITLE|$RIGCTL_OUTCOME|$RIGCTL_RUN" >>"{file}"'
    tell(TOLD, settings(command), {"PATH": "/usr/bin:/bin"})
    assert file.read_text() == f"{TOLD.markdown}{TOLD.title}|news|run1\n"


def test_a_command_that_fails_is_tried_again(tmp_path: Path) -> None:
    command = f"echo x >>{tmp_path}/tries; [ $(wc -l <{tmp_path}/tries) = 3 ]"
    tell(TOLD, settings(command), {"PATH": "/usr/bin:/bin"}, pauses_s=AT_ONCE)
    with pytest.raises(RigError, match=r"--notify: echo no >&2; false: exit code 1: no \(4 attempts\)"):
        tell(TOLD, settings("echo no >&2; false"), {"PATH": "/usr/bin:/bin"}, pauses_s=AT_ONCE)


def ends(pid: Path) -> None:
    eventually(lambda: not Path(f"/proc/{pid.read_text().strip()}/exe").exists())


def test_a_command_that_hangs_is_ended_with_all_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pid"

    class Begun(subprocess.Popen[bytes]):
        """A command whose time begins when it has started a child."""

        def wait(self, timeout: float | None = None) -> int:
            eventually(lambda: file.exists() and file.read_text().endswith("\n"))
            return super().wait(timeout)

    monkeypatch.setattr(subprocess, "Popen", Begun)
    with pytest.raises(RigError, match=r"not finished within 0\.5 s"):
        command = f"sleep 300 & echo $! >{file}; wait"
        tell(TOLD, settings(command), {"PATH": "/usr/bin:/bin"}, pauses_s=(), command_s=0.5)
    ends(file)


def test_a_command_that_leaves_a_child_behind_is_run_once_and_its_child_ended(tmp_path: Path) -> None:
    command = f"cat >>{tmp_path}/told; sleep 300 & echo $! >{tmp_path}/pid"
    tell(TOLD, settings(command), {"PATH": "/usr/bin:/bin"}, command_s=DEADLINE_S)
    assert (tmp_path / "told").read_text() == TOLD.markdown
    ends(tmp_path / "pid")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CONFIG", "STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / f"{name} 100%"))
    return tmp_path


def test_systemd_finds_nothing_wrong_with_units_of_odd_names_and_paths(tmp_path: Path) -> None:
    python = tmp_path / "my tools 100%" / "py thon"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    files = []
    for name in ["lab", "lab-1.2", "A_b.c-3"]:
        words = [str(python), "-m", "rigctl", "nightly", "run", name]
        (tmp_path / f"{unit_name(name)}.service").write_text(service(name, words, {"XDG_STATE_HOME": "/a b/%$x"}))
        (tmp_path / f"{unit_name(name)}.timer").write_text(timer(name, time(2, 30)))
        files += [f"./{unit_name(name)}.timer", f"./{unit_name(name)}.service"]
    environment = os.environ | {"SYSTEMD_UNIT_PATH": f"{tmp_path}:", "XDG_RUNTIME_DIR": str(tmp_path)}
    how: dict[str, Any] = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
    command = ["systemd-analyze", "verify", "--user", "--man=no", *files]  # of the package systemd
    done = subprocess.run(command, **how, timeout=DEADLINE_S, check=False)
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "rigctl" in line]
    assert (done.returncode, ours) == (0, [])


def test_systemd_reads_the_time_as_it_is_meant() -> None:
    calendar = next(line for line in timer("x", time(2, 5)).splitlines() if line.startswith("OnCalendar="))
    command = ["systemd-analyze", "calendar", "--iterations=2", calendar.removeprefix("OnCalendar=")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    assert "Normalized form: *-*-* 02:05:00" in done.stdout


def stand_in(home: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """A systemctl that notes what it is asked."""
    systemctl = program(home / "tools" / "systemctl", f'echo "$*" >>"{home}/asked"\n{script}')
    monkeypatch.setenv("PATH", f"{systemctl.parent}:{os.environ['PATH']}")
    return home / "asked"


def test_with_systemd_units_are_written_and_the_timer_is_started(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = stand_in(home, monkeypatch, "exit 0")
    done = install.install("lab", settings("true"), 1e9)
    assert done.cron is None
    assert [path.name for path in done.units] == ["rigctl-nightly-lab.service", "rigctl-nightly-lab.timer"]
    assert all(path.is_file() and path.is_absolute() for path in done.units)
    assert "--user daemon-reload\n--user enable --now rigctl-nightly-lab.timer\n" in asked.read_text()
    assert install.timer_active("lab") is True
    removed = install.uninstall("lab")
    assert "--user disable --now rigctl-nightly-lab.timer\n" in asked.read_text()
    assert not any(path.exists() for path in removed)
    assert len(removed) == 4


def test_without_systemd_there_are_no_units_but_a_line_for_cron(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(home, monkeypatch, "exit 1")
    done = install.install("lab", settings("true"), 1e9)
    assert done.units == ()
    assert (done.cron or "").endswith(f"{sys.executable} -m rigctl nightly run lab")
    assert not any(path.exists() for path in install.unit_files("lab"))
    assert install.timer_active("lab") is None
