from dataclasses import replace
from uuid import UUID
from xml.etree import ElementTree

import pytest
from atom import broken_rules

from rigctl.site.folder import link, plain
from rigctl.site.nights import News, State
from rigctl.site.pages import MOST_ENTRIES as MOST
from rigctl.site.pages import feed

SITE = UUID("1c0a1e64-6f0f-4c3e-9c43-000000000001")
ENTRY = News("run a", 1.79e9, State.WORSE, "mesh: a < b & \x07\ud800", ("one.", "two."), "runs/a.html")
NAMES = {"a": "http://www.w3.org/2005/Atom"}


def many(count: int) -> list[News]:
    return [replace(ENTRY, key=f"run {number}", at=1.79e9 + number) for number in range(count)]


def test_a_feed_breaks_no_rule() -> None:
    for entries in ([], [ENTRY], many(3)):
        assert list(broken_rules(feed(SITE, "a < b", entries, 1.8e9).encode())) == []


def test_what_an_entry_is_known_by_does_not_follow_its_words() -> None:
    def ids(entry: News) -> list[str | None]:
        return [own.text for own in ElementTree.fromstring(feed(SITE, "t", [entry], 1.0)).iterfind(".//a:id", NAMES)]

    assert ids(ENTRY) == ids(replace(ENTRY, title="other", sentences=(), at=2e9))
    assert ids(ENTRY)[0] == ids(replace(ENTRY, key="run b"))[0] == SITE.urn
    assert ids(ENTRY)[1] != ids(replace(ENTRY, key="run b"))[1]


def test_the_latest_come_first_and_the_rest_is_left_out() -> None:
    root = ElementTree.fromstring(feed(SITE, "t", many(MOST + 20), 1.0))
    dates = [own.text or "" for own in root.iterfind("a:entry/a:updated", NAMES)]
    assert len(dates) == MOST
    assert dates == sorted(dates, reverse=True)


@pytest.mark.parametrize("text", ["../../etc/passwd", "", ".", "Größe", "a b", "x" * 300, "con\\..", "\x00"])
def test_a_strange_name_is_one_file_in_its_folder(text: str) -> None:
    name = plain(text)
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    assert name[0] not in ".-"
    assert 0 < len(name) <= 60


def test_names_that_differ_in_case_only_are_two_files_everywhere() -> None:
    assert len({plain(name).lower() for name in ("lab", "Lab", "LAB")}) == 3


def test_an_address_is_relative_and_quoted() -> None:
    assert link("runs/a.html", "scenarios/x@y.html#t1") == "../scenarios/x%40y.html#t1"
    assert link("index.html", "feed.xml") == "feed.xml"
