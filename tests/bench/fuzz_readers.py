"""What reads foreign texts and files, fuzzed with atheris (`make fuzz`): coverage leads the way.

    python tests/bench/fuzz_readers.py TARGET CASES [libFuzzer's options…]

A case may end in what was read or in one message of an error class of rigctl; a traceback, a text that could command
a terminal, a message without the file's name, 10 s of processor time or 1.5 GB are findings. Prints what libFuzzer
prints.
"""

import importlib
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1] / "support")]
atheris: Any = importlib.import_module("atheris")

with atheris.instrument_imports(include=["rigctl"]):
    import fuzz_targets

NASTY: Final = (
    "9" * 40, "-1", "0", "1e999", ".inf", ".nan", "null", "~", "[]", "{}", "''", "true", "*a", "&a [*a]", "!!python/x",
    "\x1b[2J", "\u202e", "<script>", "=1+1", "@", "%", "|", ">", "? ", "- ", ": ", "\t", "#", "\x00", "..", "../../etc",
    "1K..4K times 2", "1..99999999", "n[1-9999]", "NaN", "18446744073709551616", "-9223372036854775809", '"', "\\ud800",
)  # fmt: skip
"""Values that have misled readers before."""


def spliced(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """One line removed, doubled, moved, indented, or with one word of it replaced."""
    if not lines:
        return [chance.choice(NASTY).encode()]
    at = chance.randrange(len(lines))
    match chance.randrange(6):
        case 0:
            return lines[:at] + lines[at + 1 :]
        case 1:
            return [*lines[: at + 1], *lines[at:]]
        case 2:
            other = chance.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
            return lines
        case 3:
            return [*lines[:at], b" " * chance.randrange(1, 5) + lines[at].lstrip(), *lines[at + 1 :]]
        case _:
            words = lines[at].replace(b":", b": ").replace(b",", b" , ").split(b" ")
            words[chance.randrange(len(words))] = chance.choice(NASTY).encode()
            return [*lines[:at], b" ".join(words), *lines[at + 1 :]]


def mutated(data: bytes, most: int, seed: int) -> bytes:
    """libFuzzer's own mutation of bytes, or one of lines and words."""
    chance = random.Random(seed)
    if chance.random() < 0.5:
        return bytes(atheris.Mutate(data, most))
    return b"\n".join(spliced(data.split(b"\n"), chance))[:most]


def main(target: str, cases: int, options: list[str]) -> None:
    read, seeds = fuzz_targets.TARGETS[target]
    corpus = Path(os.environ.get("RIGCTL_FUZZ_CORPUS") or tempfile.mkdtemp(prefix=f"fuzz-{target}-"))
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    words = f"-runs={cases} -timeout=86400 -rss_limit_mb=1500 -max_len=8192 -print_final_stats=1".split()
    atheris.Setup([sys.argv[0], *words, *options, str(corpus)], fuzz_targets.judging(read), custom_mutator=mutated)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
