"""Anonymous runs: each text of the records is decided on, and runs that differ in private texts only become one."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Final

import builders
import pages
import pytest
from private_runs import KEPT, KEPT_FACTS, PRIVATE, text_fields, with_private_texts

from rigctl.base.resources import bundled_text
from rigctl.records import (
    KIND_COUNTS,
    Against,
    Capture,
    Condition,
    Direction,
    Expectation,
    HostSetting,
    Link,
    Operator,
    Pair,
    Port,
    PortSeries,
    Repetition,
    RunInfo,
    Side,
    Status,
    Trunk,
)
from rigctl.records.anonymous import BUILD_FACTS, HIDDEN_FACTS, INTERFACE_FACTS, Anonymizer
from rigctl.records.host_facts import HOST_FACTS
from rigctl.settings import Subflows

Run = tuple[RunInfo, list[Repetition]]
HOSTILE: Final = ("flow", "n", "a", "B", "S1", "p1", "limit", "test", "if1", "condition 1", "class 1", "rig", "A", "zz")
"""Names that are words of reports, parts of such words, or letters that others get."""


def anonymous(info: RunInfo, repetitions: list[Repetition]) -> Run:
    letters = Anonymizer()
    return letters.info(info), [letters.repetition(repetition) for repetition in repetitions]


def renaming(names: tuple[str, ...]) -> Callable[[str], str]:
    """Return a function that gives each text one of these names, then further ones. Addresses become other ones."""
    made: dict[str, str] = {}
    more = iter((*names, *(f"{names[0]}{number}" for number in range(10**6))))
    numbers = count(1)

    def change(text: str) -> str:
        if text and text not in made:
            if text.count(":") == 5:
                made[text] = f"0e:fe:00:00:00:{next(numbers) % 256:02x}"
            elif ":" in text and not set(text) - set("0123456789abcdef:/"):
                made[text] = f"fd99::{next(numbers):x}"
            elif text.count(".") == 3 and text.replace(".", "").isdigit():
                made[text] = f"10.254.{next(numbers) // 256}.{next(numbers) % 256}"
            else:
                made[text] = next(more)
        return made[text] if text else ""

    return change


def own(info: RunInfo) -> RunInfo:
    """Return a run of a scenario and a rig of the user's own."""
    plan = replace(
        info.plan, scenario_name="mine", rig_name="lab", scenario_yaml="mine" * bool(info.plan.scenario_yaml)
    )
    return replace(info, plan=plan)


def test_each_text_of_the_records_is_kept_or_private() -> None:
    """A new text fails here: decide in `rigctl/records/anonymous.py` what becomes of it."""
    assert text_fields(RunInfo, Repetition, *KIND_COUNTS.values()) == KEPT | PRIVATE
    assert not KEPT & PRIVATE
    assert HOST_FACTS.keys() == HIDDEN_FACTS | INTERFACE_FACTS | BUILD_FACTS | KEPT_FACTS


@pytest.mark.parametrize("name", sorted(path.stem for path in pages.GOLDEN.glob("*.rigctl")))
def test_a_run_with_other_names_and_texts_becomes_the_same_anonymous_run(name: str) -> None:
    info, repetitions = pages.stored(name)
    mine = own(info)
    plain = anonymous(*with_private_texts(mine, repetitions, renaming(("host.lan",))))
    assert plain == anonymous(*with_private_texts(mine, repetitions, renaming(HOSTILE)))


def test_a_node_with_the_name_of_a_system_leaves_the_system_known() -> None:
    facts = {
        name: {"kernel": "Linux 6.1 x86_64", "os": "Ubuntu 24.04 (noble)"} for name in ("linux", "Ubuntu", "noble")
    }
    info, _ = anonymous(builders.run(facts=facts), [])
    for known in list(info.facts.values())[-3:]:
        assert known == {"kernel": "Linux 6.1 x86_64", "os": "Ubuntu 24.04 (…)"}


def test_letters_follow_the_order_of_the_rig() -> None:
    nodes = [f"n{number}" for number in range(30, 0, -1)]
    cell = builders.cell(pairs=(Pair("n1", "n30"),))
    info = builders.run(builders.plan([cell], links={node: Link(10**9, 1500) for node in nodes}))
    own, _ = anonymous(info, [])
    letters = [chr(ord("A") + number) for number in range(26)]
    assert list(own.plan.links) == [*letters, "AA", "AB", "AC", "AD"] == list(own.facts)
    assert own.plan.cells[0].pairs == (Pair("AD", "A"),)


def rich() -> Run:
    """Return a run in which everything private is: two switches, a trunk, conditions, classes, captures, subflows."""
    subflows = Subflows([("10.9.8.7", "10.9.8.6", 5, None), ("fd00::7", "10.9.8.6", 6, 0)])
    cell = builders.cell(
        pairs=(Pair("pi1", "pi2"),), condition="acme fast", traffic_class="secret", folder="/srv/acme", mptcp=True
    )
    settings = (HostSetting("mtu", "9000"), HostSetting("sysctl", "2", "net.ipv4.conf.enxb827eb000001.rp_filter"))
    plan = builders.plan(
        [cell],
        title="Acme",
        notes="at Acme, 5th floor",
        overrides=("--set pairs=pi1:pi2",),
        links={"pi1": Link(10**9, 1500, "spine"), "pi2": Link(10**9, 1500, "edge-acme")},
        conditions=(Condition("acme fast", settings),),
        ports=(Port("spine", "to-pi1", node="pi1"), Port("spine", "up", peer="edge-acme")),
        trunk=Trunk(("spine", "edge-acme"), None),
        heads=(("Mean", "Acme"),),
        expectations=(Expectation("secret.goodput", "goodput_mbps", "> 1M", Operator.ABOVE, (1,), 1.0),),
        against=Against("condition", "default", "acme fast", ()),
    )
    facts = builders.facts(
        kernel="Linux 6.1-pi1-custom aarch64",
        interface="enxb827eb000001",
        mac="b8:27:eb:00:00:01",
        notes=["pi1: no ethtool"],
        addresses=["10.9.8.7/24"],
        data_address="10.9.8.7",
        serial="X1",
        **{"condition acme fast": {"mtu": "1500 -> 9000"}},
    )
    other = {"firmware": "1.2", "kernel": "Windows 10.0 x86_64", "pi_model": "Raspberry Pi 5"}
    info = builders.run(plan, facts={"pi1": facts, "pi2": other}, tags={"site": "acme", "baseline": ""})
    measured = builders.repetition(cell, (900.0,), sender={"mptcp": subflows})
    series = PortSeries("spine", "to-pi1", "snmp", {"t_ns": [1]})
    capture = Capture("pi1", cell.pairs[0], Direction.FORWARD, "acme-pi1.pcap", 5, 0, False)
    missing = ("edge-acme: no answer",)
    return info, [replace(measured, counters=(series,), counters_missing=missing, captures=(capture,))]


def test_nothing_private_is_left_and_what_was_tested_is() -> None:
    info, (one,) = anonymous(*rich())
    text = repr((info, one)).lower()
    for original in (
        "acme",
        "pi1",
        "pi2",
        "spine",
        "edge",
        "to-pi1",
        "secret",
        "b8:27",
        "b827",
        "10.9.8",
        "fd00",
        "srv",
        "x1",
    ):
        assert original not in text
    plan, facts = info.plan, info.facts["A"]
    assert (plan.links["A"].switch, plan.trunk and plan.trunk.ends) == ("S1", ("S1", "S2"))
    assert plan.ports == (Port("S1", "p1", node="A"), Port("S1", "p2", peer="S2"))
    assert one.counters[0].switch == "S1"
    assert one.counters[0].port == "p1"
    assert plan.conditions[0].settings[1].label == "net.ipv4.conf.if1.rp_filter"
    assert plan.conditions[0].name == plan.cells[0].condition == "condition 1"
    assert facts["condition condition 1"] == {"mtu": "1500 -> 9000"}
    assert (facts["interface"], facts["kernel"]) == ("if1", "Linux 6.1-…-custom aarch64")
    assert info.facts["B"] == {"firmware": "1.2", "kernel": "Windows 10.0 x86_64", "pi_model": "Raspberry Pi 5"}
    assert facts["cpu_model"] == builders.facts()["cpu_model"]
    assert plan.cells[0].traffic_class == "class 1"
    assert plan.expectations[0].name == "class 1.goodput"
    assert (one.captures, info.tags, plan.anonymous, plan.ip_version) == ((), {}, True, 4)
    side = one.flows[0].sender
    assert isinstance(side, Side)
    assert side.subflows == (("198.18.0.1", "198.18.0.2", 5, None), ("2001:db8::3", "198.18.0.2", 6, 0))


def test_a_short_condition_is_named_by_its_settings() -> None:
    fast, small = (Condition(name, (HostSetting("mtu", value),)) for name, value in (("Acme", "9000"), ("B", "1400")))
    cells = [builders.cell(1, condition="Acme"), builders.cell(2, condition="B")]
    info, _ = anonymous(builders.run(builders.plan(cells, conditions=(fast, small))), [])
    assert [cell.condition for cell in info.plan.cells] == ["mtu 9000", "mtu 1400"]
    twins = builders.plan(cells, conditions=(fast, replace(small, settings=fast.settings)))
    info, _ = anonymous(builders.run(twins), [])
    assert [cell.condition for cell in info.plan.cells] == ["condition 1", "condition 2"]


def test_names_of_a_bundled_scenario_stay_unless_its_file_was_changed() -> None:
    text = bundled_text("qos")
    assert text is not None
    cells = [builders.cell(1, traffic_class="voice"), builders.cell(2, traffic_class="mine")]
    plan = builders.plan(cells, scenario_name="qos", rig_name="gigablox", title="Voice beside bulk", scenario_yaml=text)
    info, _ = anonymous(builders.run(plan), [])
    assert (info.plan.title, info.plan.scenario_name, info.plan.rig_name) == ("Voice beside bulk", "qos", "gigablox")
    assert [cell.traffic_class for cell in info.plan.cells] == ["voice", "class 2"]
    changed, _ = anonymous(builders.run(replace(plan, scenario_yaml=f"{text}# mine", rig_name="lab")), [])
    assert (changed.plan.title, changed.plan.scenario_name, changed.plan.rig_name) == ("", "qos", "rig")
    assert [cell.traffic_class for cell in changed.plan.cells] == ["class 1", "class 2"]


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        (Status.INVALID, "start skew 14.0 ms exceeds the limit of 10 ms", None),
        (Status.INTERRUPTED, "stopped by Ctrl-C or a signal", None),
        (Status.FAILED, "pi2: connection refused by acme", "B: reason left out, as this run is anonymous"),
        (Status.FAILED, "acme: gone", "reason left out, as this run is anonymous"),
        (Status.OK, "not measured: pi1 -> pi2", "some pairs were not measured; which and why is left out"),
    ],
)
def test_a_reason_says_what_names_nothing(status: Status, reason: str, expected: str | None) -> None:
    info = builders.run()
    letters = Anonymizer()
    letters.info(info)
    made = letters.repetition(builders.repetition(info.plan.cells[0], status=status, reason=reason)).reason
    assert made == reason if expected is None else made is not None and made.startswith(expected)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        *((name, True) for name in ("eth0", "lo", "enp3s0f1np1", "eno1", "ens18", "ib0", "bond0.12", "igb0", "wlan0")),
        *(
            (name, False)
            for name in ("enxb827eb123456", "Ethernet 2", "uplink-acme", "eth-pi1", "vmbr-lab", "eth01234")
        ),
    ],
)
def test_an_interface_keeps_its_name_if_its_place_gives_it(name: str, kept: bool) -> None:
    facts = {"pi1": builders.facts(interface=name, cards=[name, "eth1"])}
    info, _ = anonymous(builders.run(facts=facts), [])
    shown = name if kept else "if1"
    assert (info.facts["A"]["interface"], info.facts["A"]["cards"]) == (shown, [shown, "eth1"])


def test_one_object_gives_a_node_the_same_letter_in_two_runs() -> None:
    first = builders.run(builders.plan([builders.cell(pairs=(Pair("x", "y"),))]))
    second = builders.run(builders.plan([builders.cell(pairs=(Pair("y", "z"),))]))
    letters = Anonymizer()
    assert [list(letters.info(info).plan.links) for info in (first, second)] == [["A", "B"], ["B", "C"]]
