"""What strangers can reach, and the journal that may lie around damaged: fuzzed for a second each, or half a minute."""

import subprocess
from pathlib import Path

import pytest
from talk import AGENTS
from torture import TIMES

SECONDS = TIMES

# Most of the agent, a minute to compile.
TARGETS = (
    *(pytest.param(name, marks=pytest.mark.long) for name in ("orders", "opening")),
    "order",
    "journal",
    "datagram",
)


@pytest.mark.torture
@pytest.mark.timeout(120 + SECONDS)
@pytest.mark.parametrize("target", TARGETS)
def test_rubbish_finds_nothing(target: str, tmp_path: Path) -> None:
    subprocess.run(["make", "-s", "-C", str(AGENTS), f"build/fuzz-{target}"], check=True)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    command: list[str | Path] = [
        AGENTS / "build" / f"fuzz-{target}",
        f"-max_total_time={SECONDS}",
        f"-dict={AGENTS / 'fuzz' / 'agent.dict'}",
        "-max_len=4096",
        corpus,
        AGENTS / "fuzz" / "corpus" / target,
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60 + SECONDS, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "stat" in done.stderr or "DONE" in done.stderr
