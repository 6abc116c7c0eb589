"""News of a scenario on a rig: changes by the night in which each was found, missed bounds, nights not measured.

The news of all scenarios become an Atom feed (RFC 4287). Its identifiers are made from what they name: they never
change. Its addresses are relative: a site does not know where it will lie.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from uuid import UUID, uuid5
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rigctl.base.version import __version__
from rigctl.site.folder import FEED, INDEX, link
from rigctl.site.nights import News

MOST_ENTRIES: Final = 100
"""Entries of the feed."""
_ATOM: Final = "http://www.w3.org/2005/Atom"
_UNFIT: Final = re.compile(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""


def feed(site: UUID, title: str, entries: Sequence[News], latest_at: float) -> str:
    """Return the feed of the latest entries, the latest first. `latest_at`: when the last run of the site ended."""
    latest = sorted(entries, key=lambda entry: (-entry.at, entry.key))[:MOST_ENTRIES]
    updated = max([latest_at, *(entry.at for entry in latest)])
    root = _element(Element("feed", xmlns=_ATOM), site.urn, title, updated, INDEX)
    SubElement(root, "link", rel="self", type="application/atom+xml", href=FEED)
    SubElement(SubElement(root, "author"), "name").text = "rigctl"
    SubElement(root, "generator", version=__version__).text = "rigctl"
    for entry in latest:
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
