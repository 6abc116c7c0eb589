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
_SVG_SIZE: Final = re.compile(r"""\b(width|height)\s*=\s*["']\s*([0-9.]+)(?:px)?\s*["']""")
_VIEW_BOX: Final = re.compile(r"""\bviewBox\s*=\s*["']\s*[-0-9.]+[\s,]+[-0-9.]+[\s,]+([0-9.]+)[\s,]+([0-9.]+)\s*["']""")


@dataclass(frozen=True, slots=True)
class Logo:
    address: str  # data:image/svg+xml;base64,…
    aspect: float  # width ÷ height


def read_logo(path: Path) -> Logo:
    """Return the logo in a file. Raise `ValueError` with what is wrong with the file."""
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    try:
        large = path.stat().st_size
        content = path.read_bytes() if large <= MOST_BYTES else b""
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from error
    if large > MOST_BYTES:
        raise ValueError(f"a file of {large:,} bytes is too large: at most {MOST_BYTES:,} are embedded")
    kind, (width, height) = _size(content)
    if kind != "svg+xml" and width * height > MOST_PIXELS:
        raise ValueError(f"{width:g} × {height:g} pixels are too many: at most {MOST_PIXELS:,} in all. Make it smaller")
    aspect = width / height if min(width, height) > 0 else 1.0
    if not 0.05 <= aspect <= 20:
        raise ValueError(f"{width:g} × {height:g} is no shape for a logo")
    return Logo(f"data:image/{kind};base64,{base64.b64encode(content).decode()}", aspect)


def _size(content: bytes) -> tuple[str, tuple[float, float]]:
    if content.startswith(b"\x89PNG\r\n\x1a\n") and len(content) >= 24:
        return "png", struct.unpack(">II", content[16:24])
    if content.startswith(b"\xff\xd8"):
        return "jpeg", _jpeg_size(content)
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP" and len(content) >= 30:
        return "webp", _webp_size(content[12:16], content[20:30])
    tag = re.search("<svg[^>]*", content[:4096].decode("utf-8", "replace"))
    if tag is None:
        raise ValueError("expected an SVG, PNG, JPEG or WebP image")
    if view := _VIEW_BOX.search(tag[0]):
        return "svg+xml", (float(view[1]), float(view[2]))
    sizes = {name: float(value) for name, value in _SVG_SIZE.findall(tag[0])}
    return "svg+xml", (sizes.get("width", 1.0), sizes.get("height", 1.0))


def _jpeg_size(content: bytes) -> tuple[float, float]:
    # In the first frame header (ITU-T T.81, B.2.2).
    at = 2
    while at + 9 < len(content) and content[at] == 0xFF:
        marker, length, _, height, width = struct.unpack(">BHBHH", content[at + 1 : at + 9])
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return width, height
        at += 2 + length
    raise ValueError("is a JPEG file without a size")


def _webp_size(form: bytes, head: bytes) -> tuple[float, float]:
    # Three kinds of frames (RFC 9649).
    if form == b"VP8X":
        return 1 + int.from_bytes(head[4:7], "little"), 1 + int.from_bytes(head[7:10], "little")
    if form == b"VP8 ":
        width, height = struct.unpack("<HH", head[6:10])
        return width & 0x3FFF, height & 0x3FFF
    bits = int.from_bytes(head[1:5], "little")
    return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
