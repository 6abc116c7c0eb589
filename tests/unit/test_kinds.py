import re
from pathlib import Path

import pytest

from rigctl.records import Cell, Pair
from rigctl.report.sections import datagrams, messages, streams
from rigctl.settings import SETTINGS
from rigctl.settings.kinds import KINDS, Kind

AGENT = Path(__file__).parents[2] / "agents"


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_a_kind_is_known_to_its_cell_the_agent_the_report_and_its_settings(kind: Kind) -> None:
    cell = Cell(1, kind.name, (Pair("a", "b"),), 10.0, 0.0, 1, message_bytes=64)
    assert cell.kind is kind
    assert cell.in_messages == (kind.counts == "messages")
    source = "".join(path.read_text() for path in sorted(AGENT.glob("*.c")))
    assert kind.order is None or re.search(f'"{kind.order}"', source)
    assert kind.section in (streams.SECTION, datagrams.SECTION, messages.MESSAGES, messages.FILES)
    assert all(setting.takes(kind) for setting in SETTINGS.values() if kind in setting.needed_by)
