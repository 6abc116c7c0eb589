"""A logo to embed: its bytes as a data address, and its width for its height."""

import base64
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 256 * 1024
MOST_PIXELS: Final = 4_000_000
"""Most pixels of a picture. It is drawn 40 pixels high, and each pixel takes four bytes meanwhile."""
_NUMBER: Final = r"\s*([0-9.]+)(?:px)?\s*"
_SVG_SIZE: Final = re.compile(rf"""\b(width|height)\s*=\s*["']{_NUMBER}["']""")
_VIEW_BOX: Final = re.compile(r"""\bviewBox\s*=\s*["']\s*[-0-9.]+[\s,]+[-0-9.]+[\s,]+([0-9.]+)[\s,]+([0-9.]+)\s*["']""")


@dataclass(frozen=True, slots=True)
class Logo:
    address: str  # data:image/svg+xml;base64,…
    aspect: float  # width ÷ height


def read_logo(path: Path) -> Logo:
    """Return the logo in a file. Raise `ValueError` with what is wrong with the file."""
    try:
        if not path.is_file():
            raise ValueError(f"there is no file {path}")
        if path.stat().st_size > MOST_BYTES:
            large = path.stat().st_size
            raise ValueError(f"a file of {large:,} bytes is too large: at most {MOST_BYTES:,} are embedded")
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from error
    kind, size = _size(content)
    if kind != "svg+xml" and size[0] * size[1] > MOST_PIXELS:
        raise ValueError(
            f"{size[0]:g} × {size[1]:g} pixels are too many: at most {MOST_PIXELS:,} in all. Make it smaller"
        )
    aspect = size[0] / size[1] if min(size) > 0 else 1.0
    if not 0.05 <= aspect <= 20:
        raise ValueError(f"{size[0]:g} × {size[1]:g} is no shape for a logo")
    return Logo(f"data:image/{kind};base64,{base64.b64encode(content).decode()}", aspect)


def _size(content: bytes) -> tuple[str, tuple[float, float]]:
    if content.startswith(b"\x89PNG\r\n\x1a\n") and len(content) >= 24:
        return "png", struct.unpack(">II", content[16:24])
    if content.startswith(b"\xff\xd8"):
        return "jpeg", _jpeg_size(content)
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp", _webp_size(content)
    head = content[:4096].decode("utf-8", "replace")
    if "<svg" in head:
        return "svg+xml", _svg_size(head[head.index("<svg") :].partition(">")[0])
    raise ValueError("expected an SVG, PNG, JPEG or WebP image")


def _svg_size(tag: str) -> tuple[float, float]:
    view = _VIEW_BOX.search(tag)
    if view:
        return float(view[1]), float(view[2])
    sizes = {name: float(value) for name, value in _SVG_SIZE.findall(tag)}
    return sizes.get("width", 1.0), sizes.get("height", 1.0)


def _jpeg_size(content: bytes) -> tuple[float, float]:
    # In the first frame header (ITU-T T.81, B.2.2).
    at = 2
    while at + 9 < len(content) and content[at] == 0xFF:
        marker, length = content[at + 1], int.from_bytes(content[at + 2 : at + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return width, height
        at += 2 + length
    raise ValueError("is a JPEG file without a size")


def _webp_size(content: bytes) -> tuple[float, float]:
    # Three kinds of frames (RFC 9649).
    form, head = content[12:16], content[20:30]
    if form == b"VP8X" and len(head) == 10:
        return 1 + int.from_bytes(head[4:7], "little"), 1 + int.from_bytes(head[7:10], "little")
    if form == b"VP8 " and len(head) == 10:
        width, height = struct.unpack("<HH", head[6:10])
        return width & 0x3FFF, height & 0x3FFF
    if form == b"VP8L" and len(head) >= 5:
        bits = int.from_bytes(head[1:5], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    raise ValueError("is a WebP file without a size")
