"""Apache Parquet, typed: whole numbers, floats, texts and flags, all of them with unknown as null."""

import io
from collections.abc import Iterable

from rigctl.analysis.rows.cells import Row
from rigctl.analysis.rows.frames import frame_of
from rigctl.columns import Level


def render(rows: Iterable[Row], level: Level) -> bytes:
    buffer = io.BytesIO()
    frame_of(rows, level).to_parquet(buffer, engine="pyarrow", index=False)
    return buffer.getvalue()
