"""docs/reference/columns.md, made from the column table: `python docs/columns_page.py` prints it."""

from typing import Any

from rigctl.figures import COLUMNS, Level, dtype
from rigctl.findings.text import escape_markdown
from rigctl.settings import SETTINGS, Setting
from rigctl.settings.kinds import KINDS

_HEAD = """# Columns

Columns of `rigctl export` and of the frames in `rigctl.results.frames`. Generated from `rigctl/figures/` by
`make pages`; do not edit this page.

Columns may be added; none is renamed. Unknown is an empty field in CSV, `null` in JSON and Parquet, `–` in Markdown;
never 0. A dot marks the levels of export (`--level`) that have the column: `cells` (**c**, one row per test),
**p**airs, **f**lows, **i**ntervals, **b**ins, **h**istogram, **ph**ases. `cell` is the number of a test in the
scenario's order.

| column | unit | type | c | p | f | i | b | h | ph | meaning |
|:--|:--|:--|:-:|:-:|:-:|:-:|:-:|:-:|:-:|:--|
"""
_SETTINGS_HEAD = """
## Settings

The settings of a scenario ([explained](scenario.md#axes)), the tests that take them, and their columns above.

| setting | tests | columns | meaning |
|:--|:--|:--|:--|
"""
_TYPES = {"string": "text", "Int64": "whole number", "Float64": "number", "boolean": "flag"}


def page() -> str:
    """Return the whole page."""
    lines = []
    for column in COLUMNS:
        dots = " | ".join("•" if level in column.levels else " " for level in Level)
        lines.append(
            f"| `{column.name}` | {column.unit} | {_TYPES[dtype(column)]} | {dots} "
            f"| {escape_markdown(column.meaning)} |"
        )
    return _HEAD + "\n".join(lines) + "\n" + _SETTINGS_HEAD + "\n".join(map(_setting, SETTINGS.values())) + "\n"


def _setting(setting: Setting[Any]) -> str:
    kinds = ", ".join(kind.name for kind in KINDS.values() if setting.takes(kind))
    columns = ", ".join(f"`{column.name}`" for column in setting.columns)
    return f"| `{setting.name}` | {kinds} | {columns or '–'} | {escape_markdown(setting.meaning)} |"


if __name__ == "__main__":
    print(page(), end="")
