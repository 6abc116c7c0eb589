"""What strangers can reach, and the journal that may lie around damaged: fuzzed with so many inputs each."""

import subprocess
from pathlib import Path

import pytest
from talk import AGENTS
from torture import SEED, TIMES

# Most of the agent, a minute to compile.
TARGETS = (
    *(pytest.param(name, inputs, marks=pytest.mark.long) for name, inputs in (("orders", 200), ("opening", 5000))),
    ("order", 20_000),
    ("journal", 20_000),
    ("datagram", 50),
)


@pytest.mark.torture
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("target", "inputs"), TARGETS)
def test_rubbish_finds_nothing(target: str, inputs: int, tmp_path: Path) -> None:
    subprocess.run(["make", "-s", "-C", str(AGENTS), f"build/fuzz-{target}"], check=True)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    command: list[str | Path] = [
        AGENTS / "build" / f"fuzz-{target}",
        f"-runs={inputs * TIMES}",
        f"-seed={SEED}",
        f"-dict={AGENTS / 'fuzz' / 'agent.dict'}",
        "-max_len=4096",
        corpus,
        AGENTS / "fuzz" / "corpus" / target,
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "stat" in done.stderr or "DONE" in done.stderr
