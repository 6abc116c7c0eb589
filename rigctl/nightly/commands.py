"""Runs the steps of a night as rigctl commands: `run`, `regress --confirm`, `publish`.

Each command is a process with a deadline. Its log, in JSON lines, has the run's id and the reason of a failure.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from rigctl.base.errors import InputError, RigError
from rigctl.base.processes import die_with, end_group, wait_end
from rigctl.base.units import format_duration
from rigctl.findings import NOT_MET
from rigctl.nightly.message import Message, News, tell
from rigctl.nightly.settings import NightlySettings, store_address
from rigctl.records import Night, NightOutcome, Unmet
from rigctl.scenario.duration import longest_s
from rigctl.scenario.load import Overrides, load_plan
from rigctl.store.address import STORE

_BEYOND_S: Final = 600.0
_READ_S: Final = 600.0
"""Deadline of `regress` and `publish`, which take seconds; the time of a second measurement is added."""
_MOST_REASONS: Final = 3
_END_S: Final = 15.0
"""Time for a run to end after SIGTERM; it restores its nodes' settings within 3 s."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Result of a command. `exit_code` is None if the command was ended at its deadline."""

    exit_code: int | None
    output: str
    errors: str


def supervise(words: Sequence[str], deadline_s: float, folder: Path, store: str) -> CommandResult:
    """Run `rigctl WORDS` and return its result. End the command after `deadline_s`, or if this process is killed.

    The store's address, which may have a password, is in the environment: any user can read arguments (`ps`).
    """
    # The command writes to files, because a pipe that nobody reads would stop it.
    out, errors = folder / "output", folder / "errors"
    with out.open("wb") as out_file, errors.open("wb") as error_file:
        process = subprocess.Popen(
            [sys.executable, "-m", "rigctl", *words],
            stdin=subprocess.DEVNULL, stdout=out_file, stderr=error_file, start_new_session=True,
            env=os.environ | {STORE: store},
            preexec_fn=partial(die_with, os.getpid(), signal.SIGTERM),  # noqa: PLW1509 — single-threaded
        )  # fmt: skip
        try:
            in_time = wait_end(process, deadline_s)
        finally:
            end_group(process, _END_S)
    output, complaints = (file.read_text("utf-8", "replace") for file in (out, errors))
    return CommandResult(process.returncode if in_time else None, output, complaints[-64 * 1024 :])


def deadline_s(settings: NightlySettings) -> float:
    """Return how many s a run may take after its wait for the rig. Raise `InputError` for a bad scenario."""
    plan, _ = load_plan(settings.scenario, Overrides(settings.rig))
    return settings.deadline if settings.deadline is not None else longest_s(plan) + _BEYOND_S


@dataclass(slots=True)
class Commands:
    """The commands of one night. Their logs go to `folder`."""

    settings: NightlySettings
    folder: Path

    def measure(self, night: Night) -> Night:
        """Run the scenario until its deadline; return the night, without an outcome if all tests were measured."""
        settings = self.settings
        try:
            limit_s = deadline_s(settings)
        except InputError as error:
            return replace(night, outcome=NightOutcome.FAILED, reason=" ".join(str(error).splitlines()[:1]))
        words = ["run", settings.scenario, "--rig", settings.rig, "--wait", f"{settings.wait:g}s", "--no-report"]
        words += ["--without-unreachable"] if settings.without_unreachable else []
        ended = self._rigctl([*words, "--quiet", "--json"], limit_s + settings.wait)
        night = read_outcome(night, ended, _log_lines(self.folder / "run.jsonl"), limit_s)
        missed = ended.exit_code == 1 and night.outcome is None
        return replace(night, unmet=unmet_in_output(ended.output)) if missed else night

    def judge(self, run: str) -> News | None:
        """Return what changed since earlier nights (measured again if `confirm` is set), or None. Raise `RigError`."""
        words, limit_s = ["regress", run, "--format", "json"], _READ_S
        if self.settings.confirm:
            words += ["--confirm", "--scenario", self.settings.scenario, "--wait", f"{self.settings.wait:g}s"]
            limit_s += deadline_s(self.settings) + self.settings.wait
        found = json.loads(self._output(words, limit_s))
        is_news = found["news"] or any(own["new"] for own in found["weekly"])
        return News(found["answer"], found["markdown"]) if is_news else None

    def publish(self) -> None:
        """Update the site, if the settings name a folder for it. Raise `RigError` if that fails."""
        if self.settings.publish is not None:
            self._output(["publish", str(self.settings.publish), "--json"])

    def tell(self, message: Message) -> None:
        tell(message, self.settings, os.environ)

    def _output(self, words: list[str], limit_s: float = _READ_S) -> str:
        """Return the output of a command. Raise `RigError` if the command failed or was ended at its deadline."""
        ended = self._rigctl(words, limit_s)
        if ended.exit_code in {0, 1} and ended.output:
            return ended.output
        if ended.exit_code is None:
            raise RigError(f"rigctl {words[0]}: not finished after {format_duration(limit_s)}, so it was ended")
        last = ended.errors.strip().splitlines()
        raise RigError(last[-1].removeprefix("rigctl: ") if last else f"rigctl {words[0]}: exit code {ended.exit_code}")

    def _rigctl(self, words: list[str], limit_s: float) -> CommandResult:
        log = self.folder / f"{words[0]}.jsonl"
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        log.unlink(missing_ok=True)
        common = ["--log-format", "json", "--log-file", str(log)]
        return supervise([*words, *common], limit_s, self.folder, store_address(self.settings, os.environ))


def _log_lines(log: Path) -> list[dict[str, Any]]:
    """Return the lines of a log, without the incomplete last line that a killed process leaves."""
    lines = []
    for line in log.read_text("utf-8", "replace").splitlines() if log.exists() else ():
        with contextlib.suppress(ValueError):
            lines.append(json.loads(line))
    return lines


def read_outcome(night: Night, ended: CommandResult, log: list[dict[str, Any]], limit_s: float) -> Night:
    """Return the night with its run's id, outcome and reason, as exit code and log tell them."""
    run = next((line["run"] for line in reversed(log) if line.get("run")), None)
    last = next((line for line in reversed(log) if line.get("event") == "failed"), None)
    night = replace(night, run=run)
    if ended.exit_code is None:
        doing = f"; last in its log: {log[-1].get('message')}" if log else ""
        reason = f"the run had not finished after {format_duration(limit_s)}{doing}"
        return replace(night, outcome=NightOutcome.OVERDUE, reason=reason)
    if ended.exit_code == 0 or (ended.exit_code == 1 and run and last is None):
        return night if run else replace(night, outcome=NightOutcome.FAILED, reason="the log of the run has no run id")
    if last is not None:
        outcome = NightOutcome.BUSY if last.get("error") == "busy" else NightOutcome.FAILED
        return replace(night, outcome=outcome, reason=" ".join(str(last.get("message")).splitlines()))
    ended_tests = [line for line in log if line.get("event") == "test ended"]
    failed = [line for line in ended_tests if line.get("message") != "test ended: ok"]
    in_part = bool(failed) and any(line.get("status") == "ok" for line in ended_tests)
    why = _reasons(failed) if failed else _exit_text(ended)
    reason = f"{'measured in part: ' if in_part else ''}{why}"
    return replace(night, outcome=NightOutcome.FAILED, reason=reason, in_part=in_part)


def unmet_in_output(output: str) -> tuple[Unmet, ...]:
    """Return the missed bounds in the output of `rigctl run --json`; if there are none, one with bound `unknown`."""
    found: list[dict[str, Any]] = []
    with contextlib.suppress(ValueError):
        found = [own for own in json.loads(output)["findings"] if own["code"] == NOT_MET]
    unknown = Unmet("unknown", "A bound of `expect:` was missed, but the output does not say which: see the run")
    return tuple(Unmet(own["numbers"]["bound"], own["text"]) for own in found) or (unknown,)


def _reasons(failed: list[dict[str, Any]]) -> str:
    tests = sorted({line["cell"] for line in failed if line.get("cell")})
    texts = (str(line["message"]).removeprefix("test ended: ").removeprefix("ok: ") for line in failed)
    reasons = list(dict.fromkeys(texts))
    more = f" and {len(reasons) - _MOST_REASONS} more" if len(reasons) > _MOST_REASONS else ""
    return f"test{'s' * (len(tests) > 1)} {', '.join(map(str, tests))}: {'; '.join(reasons[:_MOST_REASONS])}{more}"


def _exit_text(ended: CommandResult) -> str:
    code = ended.exit_code or 0
    words = ended.errors.strip().splitlines()
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"rigctl run ended with {how}{f': {words[-1]}' if words else ''}"


def prune_logs(logs: Path) -> None:
    """Remove all logs but those of the latest 30 nights."""
    for old in sorted(logs.iterdir())[:-30] if logs.is_dir() else []:
        shutil.rmtree(old, ignore_errors=True)
