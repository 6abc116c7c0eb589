"""Probes are endpoints of their own beside the streams."""

import builders

from rigctl.measure import channels
from rigctl.measure.latency import probe_channels, settings
from rigctl.records import Direction


def test_each_stream_has_its_probes_numbered_after_the_streams() -> None:
    cell = builders.cell(direction=Direction.BOTH, latency_ms=20, parallel=3)
    streams, probes = channels(cell, lambda: "a" * 32), probe_channels(cell, lambda: "b" * 32)
    assert [channel.endpoint for channel in streams + probes] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [channel.stream for channel in probes] == [channel.stream for channel in streams]


def test_none_are_made_where_none_are_asked_for() -> None:
    assert probe_channels(builders.cell(), lambda: "a" * 32) == ()


def test_they_are_one_flow_of_small_datagrams_with_the_nodes_own_buffers() -> None:
    asked = {name: value for name, value in settings().items() if value is not None}
    assert asked == {"flows": 1, "transport": "udp", "test": "probe", "size": 64}
