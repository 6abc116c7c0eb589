"""Pack interval series as compact arrays: counters rise evenly, so their differences are small and compress well.

The form: one line of JSON with the names of the columns and the number of samples, then, zlib-compressed, the columns
one after the other as little-endian 64-bit integers, each value but the first as the difference to the one before.
"""

import json
import zlib
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from rigctl.records import Bins, Series

MOST_VALUES: Final = 2**23
"""In one series: 24 hours of a switch read every second take a tenth, bins of 4,000,000 half."""
_HALF: Final = 2**63

_LEVEL: Final = 1  # of zlib: level 6 saves a tenth and takes four times as long


def pack(series: Series) -> bytes:
    """Return bytes that `unpack` turns back into exactly `series`. Raise `ValueError` for unequal columns."""
    lengths = {len(values) for values in series.columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"a series needs columns of equal length, not {sorted(lengths)}")
    samples = lengths.pop() if lengths else 0
    head = json.dumps({"columns": list(series.columns), "samples": samples}, separators=(",", ":")).encode()
    columns = list(series.columns.values())
    try:
        values = np.array(columns, dtype="<i8").reshape(len(columns), samples)
    except OverflowError:
        # A switch may count to 2⁶⁴: what passes 63 bits wraps around, and back in `unpack_counters`.
        wrapped = [[(value + _HALF) % (2 * _HALF) - _HALF for value in column] for column in columns]
        values = np.array(wrapped, dtype="<i8").reshape(len(columns), samples)
    deltas = values.copy()
    # Differences that pass 64 bits wrap around, and wrap back when summed.
    deltas[:, 1:] -= values[:, :-1]
    return head + b"\n" + zlib.compress(deltas.tobytes(), _LEVEL)


def unpack(packed: bytes) -> Series:
    """Return the series that `pack` was given."""
    head, body = _head(packed)
    columns, samples = head["columns"], head["samples"]
    if not (isinstance(columns, list) and type(samples) is int and 0 <= samples * len(columns) <= MOST_VALUES):
        raise ValueError("a series above its bounds")
    deltas = np.frombuffer(_inflated(body, 8 * samples * len(columns)), dtype="<i8").reshape(len(columns), samples)
    values = deltas.cumsum(axis=1)
    return Series(dict(zip(map(str, columns), values.tolist(), strict=True)))


def unpack_counters(packed: bytes) -> Series:
    """Return the counters that `pack` was given; none is below 0."""
    columns = unpack(packed).columns
    return Series({name: [value % (2 * _HALF) for value in column] for name, column in columns.items()})


def pack_bins(bins: Bins) -> bytes:
    """Return bytes that `unpack_bins` turns back into exactly `bins`: JSON, then compressed 32-bit integers."""
    head = json.dumps({"start_ns": bins.start_ns, "width_us": bins.width_us}, separators=(",", ":")).encode()
    return head + b"\n" + zlib.compress(np.array(bins.bytes, dtype="<u4").tobytes(), _LEVEL)


def unpack_bins(packed: bytes) -> Bins:
    """Return the bins that `pack_bins` was given."""
    head, body = _head(packed)
    values = np.frombuffer(_inflated(body, None), dtype="<u4")
    start_ns, width_us = head["start_ns"], head["width_us"]
    if type(start_ns) is not int or type(width_us) is not int:
        raise ValueError("bins without a start or a width")
    return Bins(start_ns, width_us, tuple(values.tolist()))


def _head(packed: bytes) -> tuple[Mapping[str, Any], bytes]:
    line, _, body = packed.partition(b"\n")
    head = json.loads(line)
    if not isinstance(head, dict):
        raise TypeError("a series without a head")
    return head, body


def _inflated(body: bytes, expected: int | None) -> bytes:
    """Return `body` unpacked: exactly `expected` bytes, or at most `MOST_VALUES` values. The store may be foreign."""
    most = 8 * MOST_VALUES if expected is None else expected
    inflater = zlib.decompressobj()
    data = inflater.decompress(body, most + 1)
    if len(data) > most or (expected is not None and len(data) != expected):
        raise ValueError("a series whose length differs from its head")
    if not inflater.eof:
        raise ValueError("a series that is cut off")
    return data
