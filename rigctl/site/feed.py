"""The news as an Atom feed (RFC 4287). Identifiers are made from what they name, so that they never change.

Addresses are relative to the feed: a site does not know where it will lie.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final
from uuid import UUID, uuid5
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rigctl.base.version import __version__
from rigctl.site.names import FEED, INDEX, link
from rigctl.site.news import Entry

MOST: Final = 100
_ATOM: Final = "http://www.w3.org/2005/Atom"


def feed(site: UUID, title: str, entries: Sequence[Entry], latest_at: float) -> bytes:
    """The latest entries, the latest first. `latest_at`: when the last run of the site ended."""
    shown = sorted(entries, key=lambda entry: (-entry.at, entry.key))[:MOST]
    root = Element("feed", xmlns=_ATOM)
    SubElement(root, "id").text = site.urn
    SubElement(root, "title").text = _text(title)
    SubElement(root, "updated").text = _instant(max([latest_at, *(entry.at for entry in shown)]))
    SubElement(root, "link", rel="self", type="application/atom+xml", href=FEED)
    SubElement(root, "link", rel="alternate", type="text/html", href=INDEX)
    SubElement(SubElement(root, "author"), "name").text = "rigctl"
    SubElement(root, "generator", version=__version__).text = "rigctl"
    for entry in shown:
        own = SubElement(root, "entry")
        SubElement(own, "id").text = uuid5(site, entry.key).urn
        SubElement(own, "title").text = _text(entry.title)
        SubElement(own, "updated").text = _instant(entry.at)
        SubElement(own, "link", rel="alternate", type="text/html", href=link(FEED, entry.page))
        SubElement(own, "category", term=str(entry.state))
        SubElement(own, "content", type="text").text = _text("\n".join(entry.sentences))
    indent(root)
    text: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _instant(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _text(text: str) -> str:
    """What XML 1.0 can hold."""
    return "".join(
        sign
        if sign in "\t\n" or (sign >= " " and sign not in "\ufffe\uffff" and not "\ud800" <= sign <= "\udfff")
        else "\ufffd"
        for sign in text
    )
