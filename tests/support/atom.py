"""Checks of a published site: rules of RFC 4287 that its feed could break, and references that lead nowhere."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

from hostile_runs import Elements

_NAMESPACE = "{http://www.w3.org/2005/Atom}"
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")  # RFC 3339, as section 3.3 requires
_OF_FEED = {"id", "title", "updated", "link", "author", "generator", "entry", "category", "subtitle"}
_OF_ENTRY = {"id", "title", "updated", "link", "author", "category", "content", "summary", "published"}


def broken_rules(xml: bytes) -> Iterator[str]:
    """Yield each rule that the feed breaks, with its section of RFC 4287."""
    root = ElementTree.fromstring(xml)
    if root.tag != f"{_NAMESPACE}feed":
        yield f"2: the document's element is {root.tag}"
    yield from _common(root, _OF_FEED, "4.1.1")
    entries = root.findall(f"{_NAMESPACE}entry")
    if root.find(f"{_NAMESPACE}author") is None and any(own.find(f"{_NAMESPACE}author") is None for own in entries):
        yield "4.1.1: no author"
    for entry in entries:
        yield from _common(entry, _OF_ENTRY, "4.1.2")
        content = entry.findall(f"{_NAMESPACE}content")
        alternate = [link for link in entry.findall(f"{_NAMESPACE}link") if link.get("rel") in {None, "alternate"}]
        if len(content) > 1 or not (content or alternate):
            yield "4.1.2: neither content nor an alternate link, or two contents"
        if any(own.get("type") in {None, "text"} and len(own) for own in content):
            yield "4.1.3.3: text that has elements"
    ids = [own.findtext(f"{_NAMESPACE}id") for own in (root, *entries)]
    if len(set(ids)) != len(ids):
        yield "4.2.6: an id that stands twice"


def _common(element: ElementTree.Element, known: set[str], section: str) -> Iterator[str]:
    names = [child.tag.removeprefix(_NAMESPACE) for child in element]
    yield from (f"{section}: unknown element {name}" for name in names if name not in known)
    for name in ("id", "title", "updated"):
        if names.count(name) != 1:
            yield f"{section}: {names.count(name)} elements {name}"
    if not urlsplit(element.findtext(f"{_NAMESPACE}id") or "").scheme:
        yield f"4.2.6: an id that is no absolute IRI: {element.findtext(f'{_NAMESPACE}id')}"
    if not _INSTANT.fullmatch(element.findtext(f"{_NAMESPACE}updated") or ""):
        yield f"3.3: no date: {element.findtext(f'{_NAMESPACE}updated')}"
    links = element.findall(f"{_NAMESPACE}link")
    alternate = [(own.get("type"), own.get("hreflang")) for own in links if own.get("rel") in {None, "alternate"}]
    if len(alternate) != len(set(alternate)):
        yield f"{section}: two alternate links of one type"
    if any(not own.get("href") for own in links):
        yield "4.2.7.1: a link without href"
    if any(not own.get("term") for own in element.findall(f"{_NAMESPACE}category")):
        yield "4.2.2.1: a category without term"


def addresses(xml: bytes) -> list[str]:
    return [own.get("href") or "" for own in ElementTree.fromstring(xml).iter(f"{_NAMESPACE}link")]


def dead(site: Path, start: str | None = None) -> list[str]:
    """Return the references that lead nowhere, of all pages of a site or of the pages reached from `start`."""
    site = site.resolve()
    seen: set[Path] = set()
    left = [site / start] if start else sorted(site.rglob("*.html"))
    wrong = []
    while left:
        page = left.pop()
        if page in seen or page.suffix != ".html":
            continue
        seen.add(page)
        for text in sorted(Elements(page.read_text()).addresses - {"data:,"}):
            target = _target(site, page, text)
            if target is None:
                wrong.append(f"{page.relative_to(site)}: {text}")
            elif start:
                left.append(target)
    return wrong


def _target(site: Path, page: Path, reference: str) -> Path | None:
    """Return the file that a reference leads to; None if file or anchor is missing, or is outside of the site."""
    parts = urlsplit(reference)
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if parts.scheme or not target.is_file() or not target.is_relative_to(site.resolve()):
        return None
    return target if not parts.fragment or f'id="{parts.fragment}"' in target.read_text() else None
