"""A site of runs whose every text is someone else's: the elements of any other site, a feed that can be read."""

import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import builders
import hostile_runs

from rigctl.site.publish import publish
from rigctl.store import open_store

DAY_S = 86400.0
ADDRESS = re.compile(r"[\w./%~#&=?+@:,-]*")


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self.addresses: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found[tag, tuple(sorted(name for name, _ in attrs))] += 1
        self.addresses |= {value or "" for name, value in attrs if name in ("href", "src")}


def site(folder: Path, text: str) -> Path:
    folder.mkdir()
    with open_store(str(folder / "s.db")) as store:
        info, measured = hostile_runs.run(text)
        for night in range(2):
            began = builders.STARTED_AT + night * DAY_S
            builders.put(store, info, measured, began)
        publish(store, folder / "site", builders.STARTED_AT + 4 * DAY_S)
    return folder / "site"


def elements(site: Path) -> _Elements:
    parser = _Elements()
    for page in sorted(site.rglob("*.html")):
        parser.feed(page.read_text())
    return parser


def test_no_text_of_a_run_is_more_than_a_text_on_a_site(tmp_path: Path) -> None:
    text = "".join(hostile_runs.MARKUP[:1]) + "\x1b[2J\u202e\ufffe"
    hostile, plain = elements(site(tmp_path / "a", text)), elements(site(tmp_path / "b", "x" * len(text)))
    assert hostile.found.keys() == plain.found.keys()
    scripts = {attributes for tag, attributes in hostile.found if tag == "script"}
    assert scripts == {("id", "type"), ()}  # the data, and that of the charts
    assert all(ADDRESS.fullmatch(address) for address in hostile.addresses)
    made = tmp_path / "a" / "site"
    ElementTree.parse(made / "feed.xml")
    assert not any(re.search("[\x1b\u202e\ufffe]", page.read_text()) for page in made.rglob("*.html"))
