"""The agent's window over sequence numbers, against a plain one that remembers everything."""

import ctypes
import struct
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import AGENTS
from rigctl.model.histogram import bucket_of

WINDOW = 1 << 18
ROOM = 1 << 20  # more than struct datagrams needs


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("datagrams") / "datagrams.so"
    flags = [
        "-std=c11",
        "-D_GNU_SOURCE",
        "-O1",
        "-shared",
        "-fPIC",
        "-fsanitize=undefined",
        "-fno-sanitize-recover=all",
    ]
    subprocess.run(["cc", *flags, "-o", str(path), str(AGENTS / "datagrams.c")], check=True)
    return ctypes.CDLL(str(path))


def taken(library: ctypes.CDLL, numbers: list[int]) -> tuple[list[bool], list[int], dict[int, int]]:
    """Whether each counted; count, refused, duplicates, reordered, strays, next; the bursts by bucket."""
    state = ctypes.create_string_buffer(ROOM)
    library.datagrams_begin(state)
    counted = [
        bool(library.datagrams_take(state, struct.pack(">qq", number, 1000 * at), ctypes.c_int64(1000 * at + 7)))
        for at, number in enumerate(numbers)
    ]
    library.datagrams_end(state)
    head = list(struct.unpack_from("6q", state.raw))
    # 15 numbers before the histogram: of these `segmented` is an int, padded. Then four numbers, then the buckets.
    begin = 8 * (6 + 3 + 1 + 5 + 4)
    buckets = struct.unpack_from(f"{128 * 32 + 256}I", state.raw, begin)
    return counted, head, {at: count for at, count in enumerate(buckets) if count}


def plainly(numbers: list[int]) -> tuple[list[bool], list[int], dict[int, int]]:
    seen: set[int] = set()
    counted, duplicates, reordered, strays, highest = [], 0, 0, 0, -1
    for number in numbers:
        counts = False
        if number < highest + 1 - WINDOW:
            strays += 1
        elif number in seen:
            duplicates += 1
        else:
            counts = True
            reordered += number < highest
            seen.add(number)
            highest = max(highest, number)
        counted.append(counts)
    bursts: dict[int, int] = {}
    before = -1
    for number in sorted(seen):
        if number - before > 1:
            bucket = bucket_of(number - before - 1)
            bursts[bucket] = bursts.get(bucket, 0) + 1
        before = number
    return counted, [len(seen), 0, duplicates, reordered, strays, highest + 1], bursts


steps = st.lists(
    st.one_of(st.integers(-20, 20), st.sampled_from([1, 1, 1, 2]), st.integers(-WINDOW - 5, WINDOW + 5)), max_size=60
)


@settings(max_examples=150, deadline=None)
@given(steps)
def test_the_window_says_what_a_full_memory_says(library: ctypes.CDLL, moves: list[int]) -> None:
    at, numbers = 0, []
    for move in moves:
        at = max(0, at + move)
        numbers.append(at)
    assert taken(library, numbers) == plainly(numbers)


def test_jitter_is_that_of_rfc_3550(library: ctypes.CDLL) -> None:
    state = ctypes.create_string_buffer(ROOM)
    library.datagrams_begin(state)
    transits = [5000, 5000, 9000, 5000, 5000, 21_000, 5000, 5000]
    jitter, most, before = 0, 0, None
    for number, transit in enumerate(transits):
        sent = 1_000_000 * (number + 1)
        library.datagrams_take(state, struct.pack(">qq", number, sent), ctypes.c_int64(sent + transit))
        if before is not None:
            jitter += abs(transit - before) - ((jitter + 8) >> 4)
        most, before = max(most, jitter >> 4), transit
    assert struct.unpack_from("2q", state.raw, 8 * 7) == (jitter >> 4, most)


def test_one_datagram_has_no_jitter(library: ctypes.CDLL) -> None:
    state = ctypes.create_string_buffer(ROOM)
    library.datagrams_begin(state)
    library.datagrams_take(state, struct.pack(">qq", 0, 1), ctypes.c_int64(2))
    assert struct.unpack_from("2q", state.raw, 8 * 7) == (-1, -1)
