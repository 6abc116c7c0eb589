"""Judges the rehearsal of a check: what the agents refused when they prepared tests as a run does."""

from collections.abc import Collection, Iterator
from typing import Final

from rigctl.conditions.condition import KEYS_BY_KIND
from rigctl.findings import Finding, about_nodes
from rigctl.findings import nodes as said
from rigctl.paths.commands import find_on
from rigctl.paths.state import Refusal, RigState

_MOST_NUMBERS: Final = 6
_SAID_BY_RULES: Final = {
    "TCP_CONGESTION": ("congestion-missing", "congestion-forbidden"),
    "folder ": ("no-folder", "folder-in-memory", "folder-full"),
    "mptcp": ("mptcp-missing",),
    "EADDRINUSE": ("no-free-port",),
    "EADDRNOTAVAIL": ("no-free-port", "address-absent"),
}
"""Maps a part of a refusal's text to the codes of errors that say the same better."""


def judge_rehearsal(state: RigState, errors: Collection[tuple[str, str]]) -> Iterator[Finding]:
    """Report what nodes refused, except what an error of a rule explains; and what was prepared.

    `errors` has code and node of each error of a rule. A fault is reported once: a rule knows the cause better.
    """
    rehearsal = state.rehearsal
    if rehearsal is None or not rehearsal.wanted:
        return
    names = list(state.nodes)
    for refusal in sorted(rehearsal.refusals, key=lambda refusal: names.index(refusal.node)):
        if not _is_explained(refusal, errors):
            yield from _say_refused(state, refusal)
    numbers = {"done": rehearsal.done, "wanted": rehearsal.wanted}
    if rehearsal.done < rehearsal.wanted:
        yield said.REHEARSED_IN_PART.say(about_nodes(state.nodes), numbers)
    elif not rehearsal.refusals:
        yield said.REHEARSED.say(about_nodes(state.nodes), numbers)
    if untried := _untried(state):
        yield said.NOT_REHEARSED.say(about_nodes(state.nodes), untried=", ".join(untried))


def _untried(state: RigState) -> list[str]:
    """Return what a run changes on the nodes, and no node could be asked about."""
    present = min((each.facts.get("mtu") or 0 for each in state.reached()), default=0)
    settings = [setting for condition in state.conditions() for setting in condition.settings]
    # Paths were probed at the present MTU.
    beyond = [setting for setting in settings if setting.kind != "mtu" or int(setting.value) > present]
    found = (KEYS_BY_KIND[setting.kind].untried(setting) for setting in beyond)
    return list(dict.fromkeys(text for text in found if text is not None))


def _is_explained(refusal: Refusal, errors: Collection[tuple[str, str]]) -> bool:
    known = (code for sign, codes in _SAID_BY_RULES.items() if sign in refusal.text for code in codes)
    return any((code, refusal.node) in errors for code in known)


def _say_refused(state: RigState, refusal: Refusal) -> Iterator[Finding]:
    each = state.nodes[refusal.node]
    for sentence, tests in ((said.REHEARSAL_REFUSED, refusal.tests), (said.REHEARSAL_UNSURE, refusal.unsure)):
        if tests:
            numbers = {"tests": ", ".join(map(str, tests))}
            yield find_on(each, sentence, numbers, why=refusal.text, tests=_name_tests(tests))


def _name_tests(numbers: tuple[int, ...]) -> str:
    if len(numbers) == 1:
        return f"test {numbers[0]}"
    named = numbers if len(numbers) <= _MOST_NUMBERS else [*numbers[:5], f"{len(numbers) - 5} more"]
    return f"tests {', '.join(map(str, named))}"
