"""Turns host facts and setup changes (such as another kernel or MTU) into titles and texts."""

from typing import Final

from rigctl.analysis.nights.setup_changes import RESTART, RIG_FILE, SCENARIO_FILE, ChangeSource, FactValue, SetupChange
from rigctl.base.units import format_rate
from rigctl.findings.text import MOST_NAMED, UNKNOWN, join_list, lower_first, numbers_text, plural
from rigctl.records.host_facts import HOST_FACTS

FACT_TITLES: Final = {name: title for fact in HOST_FACTS.values() for name, title in fact.titles.items()}
"""Titles of host facts, in the order of pages. A fact without a title is printed under its key."""
_MOST_VALUE: Final = 40
_NO_VALUES: Final = {SCENARIO_FILE: "changed, see below", RIG_FILE: "changed, see below", RESTART: "yes"}
"""Printed instead of values that people cannot read, such as digests and ids."""
_TITLES: Final = {
    "scenario_name": "Scenario",
    "scenario_yaml": "Scenario file",
    "rig_name": "Rig",
    "rig_yaml": "Rig file",
    "overrides": "Options",
    "repeat": "Repetitions",
    "virtual": "Virtual rig",
    "ip_version": "IP version",
    "trunk rate_bps": "Rate of the trunk",
    "trunk ends": "Ends of the trunk",
    "max_skew_s": "Start skew at most, s",
    "max_loss": "Loss at most",
    "max_latency_s": "Time of requests at most, s",
    "retest variation": "Retest from a variation of",
    "retest repeat": "Repetitions of a retest",
    "until ci95": "Until an interval of",
    "until most": "Repetitions at most",
    "link rate_bps": "Link rate in the rig file",
    "link mtu": "MTU in the rig file",
    "link rtt_s": "Round-trip time in the rig file",
    "link switch": "Switch in the rig file",
    "node": "Node",
    "boot_id": "Restarted",
    "net.ipv4.tcp_congestion_control": "Default congestion control",
    "congestion": "Congestion control in use",
    "mss_effective": "MSS in use",
    "nodelay": "Nodelay in use",
    "copy_effective": "Copying in use",
    "rate_effective_mbps": "Rate limit in use, Mbit/s",
    "window_effective_bytes": "Window in use",
    "duration_s": "Duration",
    "omit_s": "Omitted",
    "capture": "Capture",
    "bin_us": "Bins",
    "latency_ms": "Probes every, ms",
}


def fact_text(name: str, value: object) -> str:
    """Return the value of a host fact as text: `on`, `1.5 Gbit/s`, `none`; a dash if unknown."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        words = ("on", "off") if ": " in name else ("yes", "no")
        return words[0] if value else words[1]
    if isinstance(value, list | tuple):
        # An empty list is printed as "none", but empty notes as unknown.
        return ", ".join(str(item) for item in value) or (UNKNOWN if name == "notes" else "none")
    if isinstance(value, int | float) and name.endswith("_bps"):
        return format_rate(float(value))
    if isinstance(value, int | float) and name.endswith("_bytes"):
        return f"{value / 2**20:,.0f} MiB"
    text = " ".join(str(value).split())
    return f"{text} µs" if name.endswith("_us") else text


def setup_title(change: SetupChange) -> str:
    """Return what changed, as a table names it: `Kernel`, `Path MTU in use` or `Tag firmware`."""
    if change.source is ChangeSource.GRANTED and change.name == "mtu":
        return "Path MTU in use"
    if change.source is ChangeSource.VERSION:
        return "Agent" if change.name.startswith("agent ") and change.name.endswith("sha256") else change.name
    if change.source is ChangeSource.TAG:
        return f"Tag {change.name}"
    titles = _TITLES | FACT_TITLES if change.source is ChangeSource.FACT else _TITLES
    return titles.get(change.name, change.name)


def setup_texts(change: SetupChange) -> tuple[str, str]:
    """Return the values before and after a setup change as texts for a table."""
    if _has_no_values(change):
        return UNKNOWN, _NO_VALUES[change.name]
    return _text(change, change.before), _text(change, change.after)


def where_text(change: SetupChange) -> str:
    """Return the nodes or tests that a setup change concerns, or `all`."""
    if change.everywhere or not change.where:
        return "all"
    of_tests = change.source in (ChangeSource.GRANTED, ChangeSource.SCENARIO)
    return numbers_text([int(number) for number in change.where]) if of_tests else join_list(change.where)


def setup_sentence(change: SetupChange) -> str:
    """Return a setup change as a phrase: `kernel 6.6 → 6.12 on n1 and n2`."""
    title, nodes = setup_title(change), change.where
    words = [lower_first(title)]
    if not _has_no_values(change):
        words.append(" → ".join(_shorten(_text(change, value)) for value in (change.before, change.after)))
    if nodes:
        words.append(f"on {join_list(nodes) if len(nodes) <= MOST_NAMED else plural(len(nodes), 'node')}")
    return " ".join(words)


def _has_no_values(change: SetupChange) -> bool:
    return change.source is not ChangeSource.TAG and change.name in _NO_VALUES


def _text(change: SetupChange, value: FactValue) -> str:
    if value is None or value == "":
        return "none"
    if change.source is ChangeSource.VERSION:
        return str(value)[:12]
    return fact_text(change.name.removeprefix("link ") if change.source is ChangeSource.RIG else change.name, value)


def _shorten(text: str) -> str:
    return text if len(text) <= _MOST_VALUE else f"{text[: _MOST_VALUE - 1]}…"
