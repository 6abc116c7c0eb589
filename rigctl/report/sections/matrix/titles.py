"""What a panel, a place in it and a condition are called."""

from typing import Final

from rigctl.analysis.views.panels import Place, Setting, settings_of
from rigctl.base.units import format_duration, size_words
from rigctl.records import Condition, Direction
from rigctl.report.words.text import plural

_WINDOWS: Final = ("window_total_bytes", "window_bytes")
_FLAGS: Final = ("nodelay", "zerocopy", "copy")
_TIMES: Final = ("duration_s", "omit_s")
_SETTINGS: Final = {"mtu": "MTU", "resize": "resizing of buffers"}


def panel_title(setting: Setting) -> str:
    """What is special about a panel: `Total window 64 KiB`, `Window 64 KiB, MSS 1460`; empty for a lone one."""
    windows = [name for name, _ in setting if name in _WINDOWS]
    shown = [name for name, value in setting if name in _WINDOWS and value is not None] or windows[:1]
    words = [_part(name, value) for name, value in setting if name not in _WINDOWS or name in shown]
    title = ", ".join(words)
    return title[:1].upper() + title[1:]


def _part(name: str, value: object) -> str:
    if name == "window_total_bytes":
        return f"total window {size_words(value)}" if isinstance(value, int) else "window not set"
    if name == "window_bytes":
        return f"window {size_words(value)}" if isinstance(value, int) else "window not set"
    if name in _FLAGS:
        return f"{name} default" if value is None else name if value else f"no {name}"
    if name == "direction":
        return "both directions" if value == Direction.BOTH else str(value)
    if name in _TIMES and isinstance(value, float | int):
        return f"{format_duration(value)}{' omitted' if name == 'omit_s' else ''}"
    return f"{'MSS' if name == 'mss' else name} {'default' if value is None else value}"


def setting_name(name: str) -> str:
    """What a setting of a condition is called: a sysctl by its own name."""
    return _SETTINGS.get(name, name)


def settings_text(condition: Condition | None) -> str:
    """What a condition sets, in one line: `MTU 1500, resizing of buffers off.`"""
    if condition is None:
        return ""
    words = ", ".join(f"{setting_name(name)} {value}" for name, value in settings_of(condition).items())
    return f"{words[:1].upper()}{words[1:]}."


def place_text(place: Place) -> str:
    """`12 pairs, 1 flow`."""
    return f"{plural(place[0], 'pair')}, {plural(place[1], 'flow')}"


def gbps(mbps: float, sign: bool = False) -> str:
    """Mbit/s as Gbit/s with two decimals: `7.91`, with a sign `+0.12` or `−0.12`."""
    value = round(mbps / 1000, 2) + 0.0
    return f"{value:+.2f}".replace("-", "−") if sign else f"{value:.2f}"
