"""What differs between two runs, in words: in a table, and as a part of a sentence."""

import pytest

from rigctl.analysis.nights.setup_changes import SetupChange, Source, Value
from rigctl.report.words.setup import setup_sentence, setup_texts, where_text


@pytest.mark.parametrize(
    ("source", "name", "values", "expected"),
    [
        (Source.FACT, "speed_bps", (10**9, 10**8), "link speed 1 Gbit/s → 100 Mbit/s"),
        (Source.RIG, "link rate_bps", (10**9, 10**8), "link rate in the rig file 1 Gbit/s → 100 Mbit/s"),
        (Source.FACT, "mtu", (1500, 9000), "MTU 1500 → 9000"),
        (Source.GRANTED, "mtu", (1500, 9000), "path MTU in use 1500 → 9000"),
        (Source.FACT, "offloads: tso", (True, False), "offloads: tso on → off"),
        (Source.FACT, "throttled", ((), ("now", "frequency")), "throttled none → now, frequency"),
        (Source.VERSION, "agent x86_64 sha256", ("0" * 64, "1" * 64), "agent 000000000000 → 111111111111"),
        (Source.TAG, "firmware", (None, "x" * 50), f"tag firmware none → {'x' * 39}…"),
        (Source.SCENARIO, "scenario_yaml", ("12ab", "34cd"), "scenario file"),
        (Source.FACT, "boot_id", ("1", "2"), "restarted"),
        (Source.TAG, "boot_id", ("1", "2"), "tag boot_id 1 → 2"),
    ],
)
def test_a_change_is_a_title_and_both_values(
    source: Source, name: str, values: tuple[Value, Value], expected: str
) -> None:
    assert setup_sentence(SetupChange(source, name, *values)) == expected


def test_nodes_are_named_up_to_three_and_counted_beyond() -> None:
    few = SetupChange(Source.FACT, "cpus", 4, 8, ("a", "b"))
    assert setup_sentence(few) == "CPUs 4 → 8 on a and b"
    many = SetupChange(Source.FACT, "cpus", 4, 8, tuple("abcd"), everywhere=True)
    assert setup_sentence(many) == "CPUs 4 → 8 on 4 nodes"
    assert (where_text(few), where_text(many)) == ("a and b", "all")


def test_a_table_has_whole_values_but_no_digests_and_no_ids() -> None:
    assert setup_texts(SetupChange(Source.TAG, "note", None, "x" * 50)) == ("none", "x" * 50)
    assert setup_texts(SetupChange(Source.RIG, "rig_yaml", "12ab", "34cd")) == ("–", "changed, see below")
    assert setup_texts(SetupChange(Source.FACT, "boot_id", "1", "2")) == ("–", "yes")
