"""The data inside a page: the run's document as `show --json` gives it, with the rows of its pairs."""

import json
from typing import Any, Final

from rigctl.report.blocks import Document
from rigctl.report.printers.json import whole
from rigctl.report.words.text import plural

MOST_BYTES: Final = 2_000_000
"""Of a page with its data."""
PLACE: Final = "<!--data-->"
"""Where a template wants the data; no text of the user holds it, as those are escaped."""
_SCRIPT: Final = '<script type="application/json" id="rigctl-data">\n{}\n</script>'


def with_data(page: str, document: Document) -> str:
    """`page` with as much of the data as its size allows, and the sentence that says what is inside."""
    if not document.export:
        return page.replace(PLACE, "", 1)
    room = MOST_BYTES - len(page.encode("utf-8", "replace")) - 500
    made: dict[str, Any] = dict(whole(document))
    columns = list(document.pairs[0]) if document.pairs else []
    rows = [[row[name] for name in columns] for row in document.pairs]
    inside = f"the document of rigctl show --json and {plural(len(rows), 'row')}, one per test, repetition and pair"
    for data, words in ((made | {"pairs": {"columns": columns, "rows": rows}}, inside), (made, _SOME)):
        text = _text(data)
        if len(text.encode("utf-8", "replace")) <= room:
            return page.replace(PLACE, f"{_note(words)}\n{_SCRIPT.format(text)}", 1)
    return page.replace(PLACE, _note(""), 1)


_SOME: Final = "the document of rigctl show --json"


def _note(inside: str) -> str:
    if not inside:
        return '<p class="small">The data would make this page too large: the command under “Reproduce” gives them.</p>'
    left = "; the command under “Reproduce” gives the rows of pairs, too many for this page" if inside == _SOME else ""
    where = "Data inside this file, as JSON in its element <code>rigctl-data</code>: "
    return f'<p class="small inside">{where}{inside}{left}.</p>'


def _text(data: dict[str, Any]) -> str:
    """JSON on one line that no text in it can end."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
