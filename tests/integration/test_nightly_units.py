"""The units of a nightly, judged by systemd itself; and a systemctl that does what it is asked."""

import os
import shutil
import subprocess
import sys
from datetime import time
from pathlib import Path

import pytest
from processes import DEADLINE_S, program

from rigctl.nightly import install
from rigctl.nightly.install import service, timer, unit_name
from rigctl.nightly.settings import Settings


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CONFIG", "STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / f"{name} 100%"))
    return tmp_path


def verified(folder: Path, *names: str) -> subprocess.CompletedProcess[str]:
    assert shutil.which("systemd-analyze"), "the package systemd has it"
    command = ["systemd-analyze", "verify", "--user", "--man=no", *names]
    environment = os.environ | {"SYSTEMD_UNIT_PATH": f"{folder}:", "XDG_RUNTIME_DIR": str(folder)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


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
    done = verified(tmp_path, *files)
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "rigctl" in line]
    assert (done.returncode, ours) == (0, [])


def test_systemd_reads_the_time_as_it_is_meant() -> None:
    calendar = next(line for line in timer("x", time(2, 5)).splitlines() if line.startswith("OnCalendar="))
    command = ["systemd-analyze", "calendar", "--iterations=2", calendar.removeprefix("OnCalendar=")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    assert "Normalized form: *-*-* 02:05:00" in done.stdout


def settings() -> Settings:
    return Settings(scenario="gigablox", rig="gigablox", at="02:30", store="/x.db")


def stand_in(home: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """A systemctl that notes what it is asked."""
    systemctl = program(home / "tools" / "systemctl", f'echo "$*" >>"{home}/asked"\n{script}')
    monkeypatch.setenv("PATH", f"{systemctl.parent}:{os.environ['PATH']}")
    return home / "asked"


def test_with_systemd_units_are_written_and_the_timer_is_started(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = stand_in(home, monkeypatch, "exit 0")
    done = install.install("lab", settings(), 1e9)
    assert done.cron is None
    assert [path.name for path in done.units] == ["rigctl-nightly-lab.service", "rigctl-nightly-lab.timer"]
    assert all(path.is_file() and path.is_absolute() for path in done.units)
    assert "--user daemon-reload\n--user enable --now rigctl-nightly-lab.timer\n" in asked.read_text()
    assert install.timer_active("lab") is True
    removed = install.remove("lab")
    assert "--user disable --now rigctl-nightly-lab.timer\n" in asked.read_text()
    assert not any(path.exists() for path in removed)
    assert len(removed) == 4


def test_without_systemd_there_are_no_units_but_a_line_for_cron(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(home, monkeypatch, "exit 1")
    done = install.install("lab", settings(), 1e9)
    assert done.units == ()
    assert (done.cron or "").endswith(f"{sys.executable} -m rigctl nightly run lab")
    assert not any(path.exists() for path in install.unit_files("lab"))
    assert install.timer_active("lab") is None
