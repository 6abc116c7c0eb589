"""Fuzzes the readers of foreign texts and files with atheris, guided by coverage (`make fuzz`).

    python tests/bench/fuzz_readers.py TARGET CASES [libFuzzer's options…]

A case may end with a result or with a `RigctlError`. Findings are tracebacks, messages with control characters or
without the file's name, 10 s of processor time, and 1.5 GB of memory. Prints the output of libFuzzer.
"""

import base64
import importlib
import json
import os
import random
import re
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final, TypeAlias

ROOT: Final = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]
atheris: Any = importlib.import_module("atheris")

with atheris.instrument_imports(include=["rigctl"]):
    import builders

    from rigctl.base.errors import RigctlError
    from rigctl.hosts.candidate import read_candidate
    from rigctl.hosts.facts import CHECK_FACTS, read_facts
    from rigctl.measure.iperf3_files import import_reports, reports_of
    from rigctl.nightly import settings as nightly
    from rigctl.paths.probing import Spot, _Probing
    from rigctl.product.theme import load_theme
    from rigctl.protocol.lines import Answer, Busy, EndpointEnd, Hello, ProgressLine, parse_line
    from rigctl.protocol.report import endpoint_report
    from rigctl.records import Pair, PortSeries, Status
    from rigctl.remote.clocks import ClockOffset, Clocks
    from rigctl.rig.load import load_rig
    from rigctl.runner.outcome import make_repetition, measurement
    from rigctl.runner.schedule import MeasurementOrder
    from rigctl.scenario.load import Overrides, load_plan
    from rigctl.store import Store, open_store
    from rigctl.store.kept_results import read_kept
    from rigctl.store.run_files import pack_runs, take
    from rigctl.switches.cli import UnreadableError, cisco_ios, dell_os9

Read: TypeAlias = Callable[[bytes], None]
Seeds: TypeAlias = Callable[[], Iterable[bytes]]
FOLDER: Final = Path(tempfile.mkdtemp(prefix="rigctl-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
SAMPLES: Final = Path(__file__).with_name("fuzz_seeds")
_COMMAND: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
MOST_S: Final = 10.0


class FoundError(Exception):
    """A message that no user should get."""


def judging(read: Read) -> Read:
    """`read`, whose only errors are those of rigctl, in a message that commands no terminal."""

    def late(number: int, frame: object) -> None:
        raise FoundError(f"{MOST_S:g} s of processor time")

    signal.signal(signal.SIGPROF, late)

    def judged(data: bytes) -> None:
        signal.setitimer(signal.ITIMER_PROF, MOST_S)
        try:
            read(data)
        except RigctlError as error:
            said = str(error)
            if not said or len(said) > 64 * 1024 or _COMMAND.search(said) or "Traceback" in said:
                raise FoundError(said[:2000]) from error
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    return judged


def _placed(path: Path, load: Callable[[Path], object], data: bytes, told: str | None = None) -> None:
    """Load `data` from a file; a message about it begins with its name, and with line and column where it has them."""
    path.write_bytes(data)
    try:
        load(path)
    except RigctlError as error:
        first = str(error).splitlines()[0]
        if not first.startswith((f"{path}:", *(() if told is None else (told,)))):
            raise FoundError(f"without its place: {error}") from error
        raise


# YAML files

SCENARIOS: Final = ROOT / "scenarios"


def scenario(data: bytes) -> None:
    _placed(FOLDER / "s.yaml", lambda path: load_plan(str(path), Overrides()), data)


def rig(data: bytes) -> None:
    _placed(FOLDER / "r.yaml", lambda path: load_rig(str(path)), data, "slurm: ")


def theme(data: bytes) -> None:
    _placed(FOLDER / "t.yaml", load_theme, data)


def nights(data: bytes) -> None:
    os.environ["XDG_CONFIG_HOME"] = str(FOLDER)
    path = nightly.file_of("n")
    path.parent.mkdir(parents=True, exist_ok=True)
    _placed(path, lambda _: nightly.load_settings("n"), data)


def _files(*folders: Path) -> Seeds:
    return lambda: [path.read_bytes() for folder in folders for path in sorted(folder.iterdir()) if path.is_file()]


# What agents and nodes say

_CELL: Final = builders.cell(pairs=(Pair("a", "b"),), duration_s=1.0)
_CLOCKS: Final = Clocks({"a": ClockOffset(0, 1000), "b": ClockOffset(5000, 3000)})


def reply(data: bytes) -> None:
    """Lines of two agents, up to the record of a repetition and its rows in a store."""
    parts: dict[int, list[Any]] = {}
    reports = {}
    for line in data.splitlines(keepends=True):
        message = parse_line("a", line)
        if isinstance(message, Hello | Busy | ProgressLine | EndpointEnd):
            continue
        if not isinstance(message, Answer):
            parts.setdefault(message.id, []).append(message)
        elif message.ok and "endpoint" in message.numbers:
            found = endpoint_report("a", parts.pop(message.id, []), message)
            reports["a" if ("a", 1) not in reports else "b", 1] = found
        _take_probed(message)
    if reports:
        _store(reports)


def _take_probed(message: object) -> None:
    if isinstance(message, Answer) and message.texts.keys() & {"heard", "errors", "streams", "refused"}:
        spots = {name: Spot(name, "127.0.0.1", 1500, None) for name in "ab"}
        probing = _Probing({}, spots, [("a", "b"), ("b", "a")], 1.0)
        with suppress(ValueError):  # what `check` takes as a violation of the protocol
            probing._add_report("a", message.texts)


def _store(reports: dict[tuple[str, int], Any]) -> None:
    from rigctl.measure.orders import channels

    order = MeasurementOrder(_CELL, 1, 1)
    measured = measurement(order.cell, channels([_CELL], lambda: "0" * 32), reports, _CLOCKS)
    with _opened(FOLDER / "reply.db", b"", create=True) as store:
        run = store.begin(builders.plan([_CELL]), {}, {}, builders.STARTED_AT)
        store.add(run, make_repetition(order, measured, Status.OK, None, 0.010))
        try:
            store.repetitions(run)
        except RigctlError as error:
            raise FoundError(f"stored, but not read: {error}") from error
        store.remove(run)


def hosts(data: bytes) -> None:
    """Outputs of a node's commands, and of a switch's command line."""
    text = data.decode("utf-8", "replace")
    json.dumps(read_facts(text, CHECK_FACTS), allow_nan=False)
    read_candidate(text)
    for parse in (cisco_ios, dell_os9):
        with suppress(UnreadableError):
            parse(text)


# Files of runs, and stores

_BASE: Final = FOLDER / "base.db"
_KEPT: Final[dict[Path, Store]] = {}


def base() -> Path:
    """A store with a run of two tests: flows with series and bins, counters, facts, tags."""
    if not _BASE.exists():
        cells = [builders.cell(number, pairs=builders.PAIRS[:1], duration_s=0.5, parallel=number) for number in (1, 2)]
        with open_store(str(_BASE)) as store:
            plan, facts = builders.plan(cells), {"pi1": builders.facts()}
            run = store.begin(plan, {"rigctl": "1"}, facts, builders.STARTED_AT, tags={"a": "b"})
            port = PortSeries("sw", "Gi1", "snmp", {"t_ns": [1, 2, 3], "in_octets": [5, 6, 7]})
            for one in cells:
                store.add(run, replace(builders.repetition(one, [900.0] * len(one.pairs)), counters=(port,)))
            store.finish(run, builders.run().status, builders.STARTED_AT + 60)
        with sqlite3.connect(_BASE) as plain:
            plain.execute("PRAGMA journal_mode = DELETE")
    return _BASE


def taken(data: bytes) -> None:
    """A file of runs, damaged as the store of `stored` is, imported into a store: what came is read."""
    path, into = _damaged(data), FOLDER / "into.db"
    try:
        with _opened(into, data, create=True) as store:
            for each in take(store, [path]):
                if not each.left_out.isprintable():
                    raise FoundError(each.left_out)
                if each.new:
                    _read(store, each.run, data)
                    store.remove(each.run)
    finally:
        # A run whose rows can't be read stays: the next case begins with an empty store.
        if into.exists() and sqlite3.connect(into).execute("SELECT count(*) FROM runs").fetchone()[0]:
            into.unlink()
            _KEPT.pop(into)


@contextmanager
def _opened(path: Path, data: bytes, *, create: bool) -> Iterator[Store]:
    """The store at `path`. Statements are compiled once by engine, which is most of a case's time: so only every 16th
    case opens it as a command does, the others look at the file with the engine of an earlier one."""
    if path not in _KEPT or sum(data) % 16 == 1:
        with open_store(str(path), create=create) as store:
            yield store
        _KEPT.setdefault(path, store)
    else:
        yield _KEPT[path]


IPERF3: Final = ROOT / "tests" / "unit" / "fixtures" / "iperf3"


def iperf3(data: bytes) -> None:
    """A file of `iperf3 -J`, up to its run in a store."""

    def take(path: Path) -> None:
        made = import_reports(reports_of(str(path), data), {})
        with _opened(FOLDER / "iperf3.db", b"", create=True) as store:
            run = store.begin(made.plan, made.versions, made.facts, made.started_at)
            store.add(run, *made.repetitions)
            try:
                _read(store, run, data)
            except RigctlError as error:
                raise FoundError(f"stored, but not read: {error}") from error
            store.remove(run)

    _placed(FOLDER / "i.json", take, data)


def _iperf3_seeds() -> Iterator[bytes]:
    """Recorded files, one value to a line for `spliced`, two intervals of two streams each."""
    for path in sorted(IPERF3.glob("*/*.json")):
        report = json.loads(path.read_bytes())
        report["intervals"] = [interval | {"streams": interval["streams"][:2]} for interval in report["intervals"][:2]]
        yield json.dumps(report, indent=0, separators=(",", ":")).encode()


def _read(store: Store, run: str, data: bytes) -> None:
    """All that a command reads of a run; every 16th case also what is slow: its file."""
    store.run(run)
    store.repetitions(run)
    read_kept(store, run, "")
    store.measured()
    store.statuses(run)
    store.controllers()
    if sum(data) % 16 == 0:
        store.sizes()
        pack_runs(store, [run])


def _damaged(data: bytes) -> Path:
    """A store damaged in bytes (first byte even) or with a value replaced in a row (odd)."""
    path = FOLDER / "damaged.db"
    content = bytearray(base().read_bytes())
    if data[:1] and data[0] % 2 == 0:
        for at in range(1, len(data) - 3, 4):
            place = int.from_bytes(data[at : at + 3], "big") % len(content)
            content[place] = data[at + 3]
        path.write_bytes(content[: len(content) - data[0] // 2 * 16 or None] if data[0] > 200 else content)
    else:
        path.write_bytes(content)
        _replace_value(path, data[1:])
    for ending in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    return path


def stored(data: bytes) -> None:
    """A damaged store, read as a whole."""
    with _opened(_damaged(data), data, create=False) as store:
        names = store.run_ids()
        with suppress(RigctlError):
            store.runs()
        for run in names:
            _read(store, run, data)


def _replace_value(path: Path, data: bytes) -> None:
    """`data` names a table, a column and a row, and what is written there: a value, or a piece of the JSON that is."""
    if len(data) < 5:
        return
    with sqlite3.connect(path) as plain:
        listed = plain.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        (table,) = listed[data[0] % len(listed)]
        columns = [row[1] for row in plain.execute(f"PRAGMA table_info({table})")]
        column = columns[data[1] % len(columns)]
        old = plain.execute(f"SELECT {column} FROM {table} LIMIT 1 OFFSET {data[2] % 3}").fetchone()
        value = _other(old[0] if old else None, data[3] % 8, data[4:])
        with suppress(sqlite3.IntegrityError, OverflowError):
            plain.execute(f"UPDATE {table} SET {column} = ?", (value,))
    plain.close()


def _other(old: object, kind: int, data: bytes) -> object:
    text = data.decode("utf-8", "replace")
    match kind:
        case 0:
            return text
        case 1:
            return data
        case 2:
            return int.from_bytes(data[:8], "big", signed=True)
        case 3:
            return (-(2**63), 2**63 - 1, float("inf"), 1e308)[data[0] % 4]
        case 4:
            return None
        case _ if isinstance(old, str):
            at = int.from_bytes(data[:2], "big") % (len(old) + 1)
            return old[:at] + text[2:] + old[at + (data[-1] % 8) :]
        case _ if isinstance(old, bytes):
            at = int.from_bytes(data[:2], "big") % (len(old) + 1)
            return old[:at] + data[2:] + old[at + (data[-1] % 8) :]
        case _:
            return base64.b64encode(data).decode()


def _stored_seeds() -> list[bytes]:
    damaged = [bytes([0, 0, 0, at, 255]) for at in (16, 18, 24, 100)]
    places = product(range(9), range(14), (0, 5))
    return damaged + [bytes([1, table, column, 0, kind]) + b"{}" for table, column, kind in places]


TARGETS: Final[dict[str, tuple[Read, Seeds]]] = {
    "scenario": (scenario, _files(SCENARIOS)),
    "rig": (rig, _files(SCENARIOS / "rigs", SAMPLES / "rig")),
    "theme": (theme, _files(SAMPLES / "theme")),
    "nights": (nights, _files(SAMPLES / "nights")),
    "reply": (reply, _files(SAMPLES / "reply")),
    "hosts": (hosts, _files(SAMPLES / "hosts")),
    "import": (taken, _stored_seeds),
    "iperf3": (iperf3, _iperf3_seeds),
    "store": (stored, _stored_seeds),
}


NASTY: Final = (
    "9" * 40, "-1", "0", "1e999", ".inf", ".nan", "null", "~", "[]", "{}", "''", "true", "*a", "&a [*a]", "!!python/x",
    "\x1b[2J", "\u202e", "<script>", "=1+1", "@", "%", "|", ">", "? ", "- ", ": ", "\t", "#", "\x00", "..", "../../etc",
    "1K..4K times 2", "1..99999999", "n[1-9999]", "NaN", "18446744073709551616", "-9223372036854775809", '"', "\\ud800",
)  # fmt: skip
"""Values that have caused faults in readers before."""


def spliced(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """Return the lines with one line removed, doubled, moved or indented, or with one word replaced."""
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
    """Return `data` changed by libFuzzer's mutation of bytes, or by `spliced`, which changes lines and words."""
    chance = random.Random(seed)
    if chance.random() < 0.5:
        return bytes(atheris.Mutate(data, most))
    return b"\n".join(spliced(data.split(b"\n"), chance))[:most]


def main(target: str, cases: int, options: list[str]) -> None:
    read, seeds = TARGETS[target]
    corpus = Path(os.environ.get("RIGCTL_FUZZ_CORPUS") or tempfile.mkdtemp(prefix=f"fuzz-{target}-"))
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    words = f"-runs={cases} -timeout=86400 -rss_limit_mb=1500 -max_len=8192 -print_final_stats=1".split()
    atheris.Setup([sys.argv[0], *words, *options, str(corpus)], judging(read), custom_mutator=mutated)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
