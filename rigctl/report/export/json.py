"""JSON (RFC 8259): an array of objects, one per row, with all columns; unknown is null."""

import json

from rigctl.analysis.frames import Frames
from rigctl.columns import Level


def render(frames: Frames, level: Level) -> bytes:
    rows = ",\n".join(json.dumps(row, allow_nan=False, ensure_ascii=False) for row in frames.rows(level))
    return f"[\n{rows}\n]\n".encode()
