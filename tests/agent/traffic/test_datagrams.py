"""The agent's window over sequence numbers, against a plain one that remembers everything."""

import ctypes
import struct
import subprocess

import pytest
from builders import bucket_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from talk import AGENTS

WINDOW = 1 << 18


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("datagrams") / "datagrams.so"
    flags = "-std=c11 -D_GNU_SOURCE -O1 -shared -fPIC -fsanitize=undefined -fno-sanitize-recover=all"
    subprocess.run(["cc", *flags.split(), "-o", str(path), str(AGENTS / "datagrams.c")], check=True)
    library = ctypes.CDLL(str(path))
    library.datagrams_take.restype = ctypes.c_bool
    return library


TAG = 0x0123456789ABCDEF
NO_LIMIT = ctypes.c_int64(1 << 62)


def datagram(number: int, sent_ns: int, tag: int = TAG) -> bytes:
    return struct.pack(">QII", tag, number % 2**32, sent_ns % 2**32)


def begun(library: ctypes.CDLL) -> ctypes.Array[ctypes.c_char]:
    state = ctypes.create_string_buffer(1 << 20)  # more than struct datagrams needs
    library.datagrams_begin(state, ctypes.c_uint64(TAG))
    return state


def taken(library: ctypes.CDLL, numbers: list[int]) -> tuple[list[bool], list[int], dict[int, int]]:
    """Whether each counted; count, refused, duplicates, reordered, strays, next; the bursts by bucket."""
    state = begun(library)
    counted = [
        bool(library.datagrams_take(state, datagram(number, 1000 * at), ctypes.c_int64(1000 * at + 7), NO_LIMIT))
        for at, number in enumerate(numbers)
    ]
    library.datagrams_end(state)
    head = list(struct.unpack_from("6q", state.raw))
    # 11 numbers, of which `segmented` is an int, padded; seven of receivers; four of the histogram; the buckets.
    begin = 8 * (6 + 4 + 1 + 7 + 4)
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


@settings(max_examples=75, deadline=None)
@given(steps)
@example([0, *[1 << 30] * 8, -1, 2, -1])  # beyond 32 bits
def test_the_window_says_what_a_full_memory_says(library: ctypes.CDLL, moves: list[int]) -> None:
    at, numbers = 0, []
    for move in moves:
        at = max(0, at + move)
        numbers.append(at)
    assert taken(library, numbers) == plainly(numbers)


def test_jitter_is_that_of_rfc_3550(library: ctypes.CDLL) -> None:
    state = begun(library)
    transits = [5000, 5000, 9000, 5000, 5000, 21_000, 5000, 5000]
    jitter, most, before = 0, 0, None
    for number, transit in enumerate(transits):
        sent = 2**32 - 3_000_000 + 1_000_000 * number  # past the end of 32 bits
        library.datagrams_take(state, datagram(number, sent), ctypes.c_int64(sent + transit), NO_LIMIT)
        if before is not None:
            jitter += abs(transit - before) - ((jitter + 8) >> 4)
        most, before = max(most, jitter >> 4), transit
    assert struct.unpack_from("2q", state.raw, 8 * 7) == (jitter >> 4, most)


def test_a_datagram_with_another_tag_is_a_stray_and_changes_nothing_else(library: ctypes.CDLL) -> None:
    state = begun(library)
    assert library.datagrams_take(state, datagram(0, 1), ctypes.c_int64(2), NO_LIMIT)
    for number in (1, 0, 200_000):
        forged = datagram(number, -(2**63), tag=TAG ^ 1)
        assert not library.datagrams_take(state, forged, ctypes.c_int64(3), NO_LIMIT)
    assert list(struct.unpack_from("9q", state.raw)) == [1, 0, 0, 0, 3, 1, -1, -1, -1]


def test_a_number_that_cannot_have_been_sent_yet_is_a_stray(library: ctypes.CDLL) -> None:
    state = begun(library)
    assert not library.datagrams_take(state, datagram(100, 1), ctypes.c_int64(2), ctypes.c_int64(100))
    assert library.datagrams_take(state, datagram(99, 1), ctypes.c_int64(2), ctypes.c_int64(100))
    assert list(struct.unpack_from("6q", state.raw)) == [1, 0, 0, 0, 1, 100]


def test_the_tag_is_siphash_of_the_flow_under_the_token(library: ctypes.CDLL) -> None:
    library.datagram_tag.restype = ctypes.c_uint64
    # The fifth of the vectors of its authors: a message of the bytes 0, 1, 2, 3.
    assert library.datagram_tag(bytes(range(16)), ctypes.c_uint32(0x03020100)) == 0xCF2794E0277187B7
