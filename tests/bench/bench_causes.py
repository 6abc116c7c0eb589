"""Does a report name the cause? rigctl's own runs with provoked causes, and the findings of `rigctl show --json`.

`python tests/bench/bench_causes.py [connect] [requests] [further] [--only REGEX]`, as root: about six seconds a cause.
Each has a virtual rig of its own: `rigctl rig up`, the acts by `rigctl rig exec` (nftables, sysctl, SIGSTOP of the
node's agent …), `rigctl run`, `rigctl show --json`, `rigctl rig down`. What is expected is in `causes.py`. A run that
was measured more than once counts as not as expected, because the acts are for the first measurement.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from bench import RIGCTL, ROOT, command, kept_up, table
from causes import CONNECT, CONNECT_CODES, FURTHER, NOT_MEASURED, REQUEST_CODES, REQUESTS, Act, Cause
from processes import eventually

RIG: Final = """
title: Two nodes, a slow link and a far node
switch: known
virtual: namespaces
links: {rate: 1G}
nodes: {a: {}, b: {}, c: {rate: 10M}, d: {rtt: 20ms}}
"""
AGENTS: Final = """
agents=
for p in /proc/[0-9]*; do
    [ "$(readlink $p/ns/net)" = "$(readlink /proc/self/ns/net)" ] || continue
    case "$(cat $p/comm)" in agent-*) agents="$agents ${p#/proc/}";; esac
done
"""
"""Finds the agent of the node by its network namespace."""
SETS: Final = {"connect": CONNECT, "requests": REQUESTS, "further": FURTHER}
WATCHED: Final = CONNECT_CODES | REQUEST_CODES | {NOT_MEASURED}
DEADLINE_S: Final = 120


@dataclass(frozen=True, slots=True)
class Found:
    """The findings of a run that are about connections or requests, or why nothing was measured."""

    findings: Sequence[Mapping[str, Any]]
    attempts: int

    @property
    def codes(self) -> frozenset[str]:
        return frozenset(finding["code"] for finding in self.findings)

    @property
    def text(self) -> str:
        return " ".join(f"{finding['text']} {finding['remedy'] or ''}" for finding in self.findings)


def started(words: Sequence[str], folder: Path) -> "subprocess.Popen[str]":
    environment = os.environ | {"PYTHONPATH": str(ROOT), "RIGCTL_STORE": str(folder / "store.db")}
    return subprocess.Popen(
        [*RIGCTL, *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def done(words: Sequence[str], folder: Path, codes: Sequence[int] = (0,)) -> str:
    process = started(words, folder)
    output, messages = process.communicate(timeout=DEADLINE_S)
    if process.returncode not in codes:
        sys.exit(f"rigctl {' '.join(words)} ended with {process.returncode}: {messages or output}")
    return output


@contextmanager
def waiting(act: Act, folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """Yield a command on the act's node that waits for a line of input; check at the end that the act succeeded."""
    script = f"echo ready; read go || exit 0; {AGENTS}{act.line}"
    process = started(["rig", "exec", "rig.yaml", act.node, "--", script], folder)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", f"{act.node} does not answer"
    yield process
    output, messages = process.communicate(timeout=DEADLINE_S)
    if process.returncode != 0:
        sys.exit(f"{act}: {process.returncode} {output} {messages}")


def events(folder: Path) -> list[dict[str, Any]]:
    log = folder / "log.jsonl"
    lines = log.read_text().splitlines() if log.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def beginnings(folder: Path) -> int:
    return sum(event.get("event") == "test begins" for event in events(folder))


def provoke(cause: Cause, folder: Path) -> Found:
    """Run rigctl with a cause; return what it found."""
    (folder / "rig.yaml").write_text(RIG)
    (folder / "scenario.yaml").write_text(cause.scenario())
    with kept_up(str(folder / "rig.yaml")), ExitStack() as stack:
        for act in cause.acts:
            if act.at_s is None:
                done(["rig", "exec", "rig.yaml", act.node, "--", act.line], folder)
        later = sorted((act for act in cause.acts if act.at_s is not None), key=lambda act: act.at_s or 0.0)
        ready = [(act.at_s or 0.0, stack.enter_context(waiting(act, folder))) for act in later]
        log = ["--log-file", "log.jsonl", "--log-format", "json"]
        run = started(["run", "scenario.yaml", "--no-report", *log], folder)
        eventually(lambda: beginnings(folder) > 0 or run.poll() is not None, "the test begins")
        began_s = time.monotonic()
        for at_s, process in ready:
            time.sleep(max(0.0, began_s + at_s - time.monotonic()))
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        _, messages = run.communicate(timeout=DEADLINE_S)
    if run.returncode == 2 or not beginnings(folder):
        return Found([{"code": NOT_MEASURED, "text": messages, "remedy": None}], 1)
    told = json.loads(done(["show", "--json"], folder))
    return Found([finding for finding in told["findings"] if finding["code"] in WATCHED], beginnings(folder))


def is_expected(cause: Cause, found: Found) -> bool:
    says = re.search(cause.says, found.text) is not None
    never = bool(cause.never) and re.search(cause.never, found.text) is not None
    return cause.must <= found.codes <= cause.must | cause.may and says and not never and found.attempts == 1


def expected_text(cause: Cause) -> str:
    parts = [", ".join(sorted(cause.must)) or "none"]
    parts += [f"may {', '.join(sorted(cause.may))}"] * bool(cause.may)
    parts += [f"says *{cause.says}*".replace("\\", "")] * bool(cause.says)
    parts += [f"never *{cause.never}*"] * bool(cause.never)
    return "; ".join(parts)


def causes(
    sets: Annotated[list[str] | None, typer.Argument(help="connect, requests, further; all if omitted")] = None,
    only: Annotated[str, typer.Option(help="causes whose name matches")] = "",
    texts: Annotated[bool, typer.Option(help="print the findings' texts too")] = False,
) -> None:
    """Provoke each cause; print what was expected, what rigctl found, and whether that is as expected."""
    right: list[bool] = []

    def rows(name: str) -> Iterator[list[str]]:
        for cause in SETS[name]:
            if not re.search(only, cause.name):
                continue
            with tempfile.TemporaryDirectory() as folder:
                found = provoke(cause, Path(folder))
            right.append(is_expected(cause, found))
            again = f" ({found.attempts} measurements)" if found.attempts > 1 else ""
            told = f"{', '.join(sorted(found.codes)) or 'none'}{again}"
            yield [cause.kind, cause.name, expected_text(cause), told, "yes" if right[-1] else "NO"]
            if texts:
                print(f"  {found.text}", flush=True)

    for name in sets or SETS:
        table(
            f"{name}; load {os.getloadavg()[0]:.1f}", ("test", "cause", "expected", "found", "as expected"), rows(name)
        )
    print(f"\nas expected: {sum(right)} of {len(right)}")
    if not all(right):
        raise SystemExit(1)


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("SIGSTOP and nftables need root")
    command(__doc__, causes)
