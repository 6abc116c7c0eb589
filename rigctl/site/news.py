"""News of a scenario on a rig: changes by the night in which each was found, missed bounds, nights not measured.

The news of all scenarios become an Atom feed (RFC 4287). Its identifiers are made from what they name: they never
change. Its addresses are relative: a site does not know where it will lie.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID, uuid5
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rigctl.analysis.nights.shifts import Shift
from rigctl.base.version import __version__
from rigctl.report.nights.page import sentence
from rigctl.site.names import FEED, INDEX, Course, link, page_of_run
from rigctl.site.nights import Slot, State

MOST_ENTRIES: Final = 100
"""Entries of the feed."""
_ATOM: Final = "http://www.w3.org/2005/Atom"
_UNFIT: Final = re.compile(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One piece of news. `key` identifies it for ever; `page` is the page that it links to."""

    key: str
    at: float  # Unix seconds
    state: State
    title: str
    sentences: tuple[str, ...]
    page: str


def entries(
    course: Course, slots: Sequence[Slot], found: Mapping[str, Sequence[Shift]], ended: Mapping[str, float]
) -> Iterator[Entry]:
    """Yield the news of `course`, the earliest first. `ended`: when each run ended."""
    for slot in slots:
        shifts = found.get(slot.run or "", ())
        goes_on = slot.state is State.UNEXPECTED and slot.since != slot.day
        if slot.state in {State.OPEN, State.MEASURED} or (goes_on and not shifts):
            continue
        said = [own.text for own in slot.unmet] + [f"{sentence(shift)}." for shift in shifts]
        sentences = tuple(said) or (slot.label.rstrip(".") + ".",)
        key = f"run {slot.run}" if slot.run else f"{course.scenario} {course.rig} {slot.at:.0f}"
        page = page_of_run(slot.run) if slot.run else course.page
        what = slot.text if slot.state in {State.WORSE, State.BETTER} else slot.what
        at = ended.get(slot.run or "", slot.at)
        yield Entry(key, at, slot.state, f"{course}, {slot.day}: {what}", sentences, page)


def feed(site: UUID, title: str, entries: Sequence[Entry], latest_at: float) -> str:
    """Return the feed of the latest entries, the latest first. `latest_at`: when the last run of the site ended."""
    shown = sorted(entries, key=lambda entry: (-entry.at, entry.key))[:MOST_ENTRIES]
    updated = max([latest_at, *(entry.at for entry in shown)])
    root = _element(Element("feed", xmlns=_ATOM), site.urn, title, updated, INDEX)
    SubElement(root, "link", rel="self", type="application/atom+xml", href=FEED)
    SubElement(SubElement(root, "author"), "name").text = "rigctl"
    SubElement(root, "generator", version=__version__).text = "rigctl"
    for entry in shown:
        own = _element(SubElement(root, "entry"), uuid5(site, entry.key).urn, entry.title, entry.at, entry.page)
        SubElement(own, "category", term=str(entry.state))
        SubElement(own, "content", type="text").text = _UNFIT.sub("\ufffd", "\n".join(entry.sentences))
    indent(root)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{tostring(root, encoding='unicode')}\n"


def _element(element: Element, id_: str, title: str, at: float, page: str) -> Element:
    """Fill in what the feed and each of its entries have."""
    SubElement(element, "id").text = id_
    SubElement(element, "title").text = _UNFIT.sub("\ufffd", title)
    SubElement(element, "updated").text = f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"
    SubElement(element, "link", rel="alternate", type="text/html", href=link(FEED, page))
    return element
