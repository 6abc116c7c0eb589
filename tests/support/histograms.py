"""The agent's way from a time to its bucket, the inverse of `rigctl.model.histogram`."""

from typing import Final

TOP_NS: Final = 2**40 - 1


def bucket_of(value_ns: int) -> int:
    """Return the bucket of a time."""
    value = min(max(value_ns, 0), TOP_NS)
    shift = max(0, value.bit_length() - 8)
    return 128 * shift + (value >> shift)
