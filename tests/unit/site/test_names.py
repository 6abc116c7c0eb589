"""Names of pages: the same for ever, and one page each, whatever others call their scenarios."""

import pytest

from rigctl.site.names import Course, link, page_of_run, plain


def test_plain_names_are_kept() -> None:
    assert Course("das2-quick", "lab").page == "scenarios/das2-quick@lab.html"
    assert page_of_run("20261122-024501-3f9a") == "runs/20261122-024501-3f9a.html"


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
