"""A recording of a terminal as an SVG that moves by itself: no script, no font from elsewhere.

Each frame is a group that is visible for its share of the time (CSS animation); the last one stays for `LAST_S`.
"""

from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

from rich.console import Console
from rich.text import Text

LAST_S: Final = 6.0
_LINE: Final = 18
_CHARACTER: Final = 8.4
_COLOURS: Final = {"cyan": "#56b6c2", "yellow": "#e5c07b", "red": "#e06c75", "green": "#98c379"}
_PLAIN, _DIM, _GROUND = "#d7dae0", "#8b919d", "#1e2127"


def recording(frames: Sequence[tuple[float, Sequence[Text]]], columns: int) -> str:
    """Return the SVG of `frames`: the time of each, in seconds, and its lines of at most `columns` characters."""
    begun = frames[0][0]
    total = frames[-1][0] - begun + LAST_S
    ends = [time for time, _ in frames[1:]] + [begun + total]
    rows = max(len(lines) for _, lines in frames)
    width, height = round(columns * _CHARACTER) + 24, rows * _LINE + 24
    style = [
        f"text{{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:{_PLAIN};white-space:pre}}",
        f"g{{visibility:hidden;animation:{total:.2f}s step-end infinite}}",
    ]
    groups = []
    for number, ((start, lines), end) in enumerate(zip(frames, ends, strict=True)):
        at, until = (100 * (time - begun) / total for time in (start, end))
        hidden = "" if number == 0 else "0%{visibility:hidden}"
        after = "" if number == len(frames) - 1 else f"{until:.2f}%{{visibility:hidden}}"
        style.append(f"@keyframes f{number}{{{hidden}{at:.2f}%{{visibility:visible}}{after}}}")
        style.append(f"#f{number}{{animation-name:f{number}}}")
        texts = (_line(line, 12 + _LINE * row + 13, columns) for row, line in enumerate(lines) if line.plain.strip())
        groups.append(f'<g id="f{number}">{"".join(texts)}</g>')
    ground = f'<rect width="{width}" height="{height}" rx="8" fill="{_GROUND}"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="rigctl run, recorded">\n<style>{"".join(style)}</style>\n{ground}\n'
        + "\n".join(groups)
        + "\n</svg>\n"
    )


def _line(line: Text, y: int, columns: int) -> str:
    spans = []
    for segment in line.render(Console(width=columns, color_system="standard", force_terminal=True)):
        colour = segment.style and segment.style.color and _COLOURS.get(segment.style.color.name)
        fill = f' fill="{_DIM}"' if segment.style and segment.style.dim else f' fill="{colour}"' if colour else ""
        bold = ' font-weight="700"' if segment.style and segment.style.bold else ""
        text = escape(segment.text.rstrip("\n"))
        spans.append(f"<tspan{fill}{bold}>{text}</tspan>" if fill or bold else text)
    return f'<text x="12" y="{y}" xml:space="preserve">{"".join(spans)}</text>'
