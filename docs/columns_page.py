"""docs/columns.md, made from the column table: `python -m columns_page > docs/columns.md`."""

from rigctl.analysis.frames import dtype
from rigctl.columns import COLUMNS, Level
from rigctl.report.text import escaped

_HEAD = """# Columns

What `rigctl export` writes, and what the frames of `rigctl.analysis.frames` hold. Made from `rigctl/columns.py` by
`python -m columns_page`; do not edit it here.

Columns may be added, none is renamed. Unknown is an empty field in CSV, `null` in JSON and Parquet, `–` in Markdown;
never 0. A dot shows the level of export that has the column: **c**ells, **p**airs, **f**lows,
**i**ntervals, **b**ins, **h**istogram.

| column | unit | type | c | p | f | i | b | h | meaning |
|:--|:--|:--|:-:|:-:|:-:|:-:|:-:|:-:|:--|
"""
_TYPES = {"string": "text", "Int64": "whole number", "Float64": "number", "boolean": "flag"}


def page() -> str:
    """The whole page."""
    lines = []
    for column in COLUMNS:
        dots = " | ".join("•" if level in column.levels else " " for level in Level)
        lines.append(
            f"| `{column.name}` | {column.unit} | {_TYPES[dtype(column)]} | {dots} | {escaped(column.meaning)} |"
        )
    return _HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
