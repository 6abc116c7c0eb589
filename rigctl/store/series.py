"""Interval series as one compact array: counters rise evenly, so differences are small and compress well.

The form: one line of JSON with the names of the columns and the number of samples, then, zlib-compressed, the columns
one after the other as little-endian 64-bit integers, each value but the first as the difference to the one before.
"""

import json
import zlib
from typing import Final

import numpy as np

from rigctl.records import Bins, Series
from rigctl.store.flat import FORMER

_LEVEL: Final = 1  # of zlib: level 6 saves a tenth and takes four times as long


def pack(series: Series) -> bytes:
    """The bytes that `unpack` turns back into exactly `series`. Raises `ValueError` for columns of unequal length."""
    lengths = {len(values) for values in series.columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"a series needs columns of equal length, not {sorted(lengths)}")
    samples = lengths.pop() if lengths else 0
    head = json.dumps({"columns": list(series.columns), "samples": samples}, separators=(",", ":")).encode()
    values = np.array(list(series.columns.values()), dtype="<i8").reshape(len(series.columns), samples)
    deltas = values.copy()
    # Differences that pass 64 bits wrap around, and wrap back when summed.
    deltas[:, 1:] -= values[:, :-1]
    return head + b"\n" + zlib.compress(deltas.tobytes(), _LEVEL)


def unpack(packed: bytes) -> Series:
    """The series that `pack` was given."""
    line, _, body = packed.partition(b"\n")
    head = json.loads(line)
    deltas = np.frombuffer(zlib.decompress(body), dtype="<i8").reshape(len(head["columns"]), head["samples"])
    values = np.cumsum(deltas, axis=1, dtype="<i8")
    names = [FORMER.get(name, name) for name in head["columns"]]
    return Series(dict(zip(names, values.tolist(), strict=True)))


def pack_bins(bins: Bins) -> bytes:
    """The bytes that `unpack_bins` turns back into exactly `bins`: a line of JSON, then 32-bit integers, compressed."""
    head = json.dumps({"start_ns": bins.start_ns, "width_us": bins.width_us}, separators=(",", ":")).encode()
    return head + b"\n" + zlib.compress(np.array(bins.bytes, dtype="<u4").tobytes(), _LEVEL)


def unpack_bins(packed: bytes) -> Bins:
    """The bins that `pack_bins` was given."""
    line, _, body = packed.partition(b"\n")
    head = json.loads(line)
    values = np.frombuffer(zlib.decompress(body), dtype="<u4")
    return Bins(head["start_ns"], head["width_us"], tuple(values.tolist()))
