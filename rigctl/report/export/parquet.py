"""Apache Parquet, typed: whole numbers, floats, texts and flags, all of them with unknown as null."""

import io

from rigctl.analysis.frames import Frames
from rigctl.columns import Level


def render(frames: Frames, level: Level) -> bytes:
    buffer = io.BytesIO()
    frames.frame(level).to_parquet(buffer, engine="pyarrow", index=False)
    return buffer.getvalue()
