"""A table as Markdown."""

from rigctl.report.table import ComparisonTable


def markdown(table: ComparisonTable) -> str:
    """The table as Markdown, its notes below it."""
    lines = [
        "| " + " | ".join(column.header for column in table.columns) + " |",
        "|" + "|".join(":--" if column.words else "--:" for column in table.columns) + "|",
    ]
    for row in table.rows:
        texts = list(row.cells)
        texts[0] += "".join(f" [{note}]" for note in row.notes)
        lines.append("| " + " | ".join(texts) + " |")
    notes = [f"[{at}] {escaped(note)}" for at, note in enumerate(table.notes, 1)]
    rest = [*table.legend, *notes]
    return "\n".join([*lines, "", *[f"{line}  " for line in rest]]).rstrip() + "\n"


def escaped(text: str) -> str:
    """`text` with what Markdown would take as markup made plain."""
    one_line = " ".join(text.split())
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]<>|#" else sign for sign in one_line)
