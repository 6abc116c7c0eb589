"""Apache Parquet, typed: whole numbers, floats, texts and flags, all of them with unknown as null."""

import io
from collections.abc import Iterable

from rigctl.analysis.rows.cells import Row
from rigctl.analysis.rows.frames import frame_of
from rigctl.base.extras import extra
from rigctl.columns import Level


def render(rows: Iterable[Row], level: Level) -> bytes:
    frame = frame_of(rows, level)
    buffer = io.BytesIO()
    with extra("parquet", "export --format parquet"):
        frame.to_parquet(buffer, engine="pyarrow", index=False)
    return buffer.getvalue()
