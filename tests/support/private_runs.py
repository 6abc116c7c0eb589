"""What is private in a stored run: the policy for each text of the records, and runs with other private texts.

`docs/how-to/publish.md` tells users the same.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, Final, get_args, get_type_hints

from rigctl.records import Repetition, RunInfo
from rigctl.records.anonymous import HIDDEN_FACTS, INTERFACE_FACTS
from rigctl.records.host_facts import HOST_FACTS

KEPT: Final = frozenset(
    {
        "MulticastCounts.group",
        "RunInfo.run", "RunInfo.versions", "RunPlan.virtual", "Cell.test", "Cell.transport", "Cell.engine",
        "HostSetting.kind", "HostSetting.value", "Expectation.column", "Expectation.text", "Expectation.words",
        "Against.setting", "Connections.failed", "PortSeries.source", "Series.columns", "PortSeries.columns",
    }
)  # fmt: skip
"""Texts from closed lists, settings, and identifiers that rigctl made."""
PRIVATE: Final = frozenset(
    {
        "MulticastCounts.querier",
        "RunInfo.facts", "RunInfo.tags", "RunPlan.title", "RunPlan.notes", "RunPlan.scenario_name",
        "RunPlan.scenario_yaml", "RunPlan.rig_name", "RunPlan.rig_yaml", "RunPlan.overrides", "RunPlan.links",
        "RunPlan.heads", "Pair.source", "Pair.destination", "Cell.condition", "Cell.folder", "Cell.traffic_class",
        "Condition.name", "HostSetting.name", "Link.switch", "Port.switch", "Port.name", "Port.node", "Port.peer",
        "Trunk.ends", "Expectation.name", "Against.before", "Against.after", "Repetition.reason",
        "Repetition.counters_missing", "PortSeries.switch", "PortSeries.port", "Capture.node", "Capture.file",
        "NodeUsage.node", "Cell.part",
    }
)  # fmt: skip
"""Texts that users or hosts chose, or that may quote these. Each is replaced or left out."""
KEPT_FACTS: Final = frozenset(
    [
        "pi_model",
        "cpu_model",
        "cpus",
        "eee",
        "pause",
        "governor",
        "power_plan",
        "idle_state",
        "idle_latency_us",
        "memory_bytes",
        "driver",
        "driver_version",
        "driver_date",
        "driver_provider",
        "firmware",
        "numa_node",
        "interrupt_processors",
        "rx_queues",
        "rss",
        "interrupt_moderation",
        "rings",
        "card_mtu",
        "speed_bps",
        "duplex",
        "bond",
        "vlan_tags",
        "mtu",
        "virtual",
        "hypervisor",
        "emulated",
        "throttled",
        "offloads",
        "sysctls",
        "numa_processors",
        "iperf3",
    ]
)
"""Facts that say what was tested, and name no host."""
_WITH_OTHERS: Final = frozenset({"HostSetting.name", "Expectation.name", "Against.before", "Against.after"})
"""Private only where they name a condition, a class or an interface, as in tests/unit/records."""


def text_fields(*roots: type) -> set[str]:
    """Return `Class.field` of each field with texts in these records and in all records within them."""
    found: set[str] = set()
    left, seen = list(roots), set[type]()
    while left:
        record = left.pop()
        if record in seen:
            continue
        seen.add(record)
        for name, hint in get_type_hints(record).items():
            if name not in {each.name for each in fields(record)}:
                continue
            for part in _parts(hint):
                if isinstance(part, type) and is_dataclass(part):
                    left.append(part)
                elif part is str or part is Any:
                    found.add(f"{record.__name__}.{name}")
    return found


def _parts(hint: Any) -> Iterator[Any]:
    yield hint
    for part in get_args(hint):
        yield from _parts(part)


def with_texts(value: Any, change: Callable[[str], str], place: str = "") -> Any:
    """Return a record in which each private text is `change(text)`; `place` is the field of `value`."""
    if isinstance(value, Enum) or place in KEPT | _WITH_OTHERS:
        return value
    if isinstance(value, str):
        return change(value)
    if isinstance(value, tuple | list):
        changed = [with_texts(each, change, place) for each in value]
        return value if all(one is other for one, other in zip(changed, value, strict=True)) else type(value)(changed)
    if place == "RunInfo.facts":
        return {change(node): _facts(facts, change) for node, facts in value.items()}
    if isinstance(value, dict):
        return {change(key): with_texts(each, change, place) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value).__name__.replace("RepetitionHead", "Repetition")
        names = [each.name for each in fields(value) if each.name not in ("granted", "settings") or kind == "Condition"]
        changes = {name: with_texts(getattr(value, name), change, f"{kind}.{name}") for name in names}
        return replace(value, **{name: new for name, new in changes.items() if new is not getattr(value, name)})
    return value


def _facts(facts: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in facts.items():
        if key.startswith("condition "):
            made[f"condition {change(key.removeprefix('condition '))}"] = value
        elif key in HIDDEN_FACTS | INTERFACE_FACTS:
            made[key] = with_texts(value, change, "fact")
        elif key in HOST_FACTS:
            made[key] = value
        else:
            made[change(key)] = value
    return made


def with_private_texts(
    info: RunInfo, repetitions: list[Repetition], change: Callable[[str], str]
) -> tuple[RunInfo, list[Repetition]]:
    """Return a run whose private texts are changed; a reason still begins with the name of its node."""

    def reason(text: str) -> str:
        node, colon, rest = text.partition(": ")
        return f"{change(node)}: {change(rest)}" if colon and node in info.facts else change(text)

    changed = with_texts(info, change)
    others = [replace(with_texts(one, change), reason=one.reason and reason(one.reason)) for one in repetitions]
    return changed, others
