"""What strangers can reach, and the journal that may lie around damaged: fuzzed for a second each, or half a minute."""

import subprocess
from pathlib import Path

import pytest
from torture import TIMES

from agents import AGENTS

SECONDS = TIMES

SEEDS = {
    "order": [b"1 clock", b"2 listen endpoint=1 address=127.0.0.1 flows=5", b"9999999999 x", b"1 a b=c b=d", b"1 a =c"],
    "journal": [b"rigctl-settings 1 x\nset mtu - eth0 1500\nset sysctl a.b - 4%2020\n", b"a%20b", b"-", b"%"],
    "datagram": [
        b"\3" * 8 + bytes(8),
        b"".join(b"\3" * 8 + number.to_bytes(4, "big") + bytes(4) for number in (0, 2, 1, 2, 900)),
    ],
    "opening": [b"t" * 32 + b"\0\0\0\1" + b"\5", b"t" * 32 + b"\xff\xff\xff\xff" + b"\5", b""],
}


@pytest.fixture(scope="module")
def built() -> None:
    subprocess.run(["make", "-s", "-C", str(AGENTS), "fuzz"], check=True)


@pytest.mark.torture
@pytest.mark.timeout(120 + SECONDS)
@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("target", SEEDS)
def test_rubbish_finds_nothing(target: str, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(SEEDS[target]):
        (corpus / str(number)).write_bytes(seed)
    command: list[str | Path] = [
        AGENTS / "build" / f"fuzz-{target}",
        f"-max_total_time={SECONDS}",
        "-max_len=1100",
        corpus,
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60 + SECONDS, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "stat" in done.stderr or "DONE" in done.stderr
