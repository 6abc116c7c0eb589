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
    tag = re.search("<svg[^>]*", content[:4096].decode("utf-8", "replace"))
    if tag is None:
        raise ValueError("expected an SVG or PNG image")
    if view := _VIEW_BOX.search(tag[0]):
        return "svg+xml", (float(view[1]), float(view[2]))
    sizes = {name: float(value) for name, value in _SVG_SIZE.findall(tag[0])}
    return "svg+xml", (sizes.get("width", 1.0), sizes.get("height", 1.0))
