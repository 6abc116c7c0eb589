"""Every kind of test is known wherever a kind has to be known."""

import re
from pathlib import Path

import pytest

from rigctl.records import Cell, Pair
from rigctl.report.sections import datagrams, messages, streams
from rigctl.settings import SETTINGS
from rigctl.settings.kinds import KINDS, Kind

AGENT = Path(__file__).parents[2] / "agents"


def cell(kind: Kind) -> Cell:
    return Cell(1, kind.name, (Pair("a", "b"),), 10.0, 0.0, 1, message_bytes=64)


@pytest.fixture(params=KINDS.values(), ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


def test_a_cell_knows_its_kind(kind: Kind) -> None:
    assert cell(kind).kind is kind
    assert cell(kind).in_messages == (kind.counts == "messages")


def test_the_agent_knows_the_word(kind: Kind) -> None:
    source = "".join(path.read_text() for path in sorted(AGENT.glob("*.c")))
    assert kind.order is None or re.search(f'"{kind.order}"', source)


def test_a_section_of_the_report_tells_of_it(kind: Kind) -> None:
    sections = (streams.SECTION, datagrams.SECTION, messages.MESSAGES, messages.FILES)
    assert kind.section in sections


def test_a_kind_takes_what_it_needs(kind: Kind) -> None:
    assert all(setting.takes(kind) for setting in SETTINGS.values() if kind in setting.needed_by)
