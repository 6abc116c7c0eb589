"""JSON (RFC 8259): an array of objects, one per row, with all columns; unknown is null."""

import json
from collections.abc import Iterable

from rigctl.analysis.rows.cells import Row
from rigctl.columns import Level


def render(rows: Iterable[Row], _level: Level) -> bytes:
    lines = ",\n".join(json.dumps(row, allow_nan=False, ensure_ascii=False) for row in rows)
    return f"[\n{lines}\n]\n".encode()
