"""Conditions: sets of host settings by name, from the scenario's text to the agents' orders.

A value that the agent would refuse is a mistake in the file, before anything is touched.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Annotated, Any, Final

from pydantic import Field, PlainValidator, WithJsonSchema, create_model

from rigctl.conditions.card import CHANNELS, COALESCE, MOST_MTU, MTU, OFFLOAD, PAUSE, RINGS, RPS
from rigctl.conditions.kernel import CONGESTION, GOVERNOR, SYSCTL
from rigctl.conditions.key import HostKey
from rigctl.conditions.qdisc import QDISC
from rigctl.records import Condition
from rigctl.rig.inventory import Rig
from rigctl.settings import DEFAULT, SETTINGS
from rigctl.settings.shape import parse_condition
from rigctl.yamlfile import MOST_FOUND, Document, FieldError, Mistake, Section
from rigctl.yamlfile.fields import Flag

KEYS: Final = (MTU, RINGS, CHANNELS, COALESCE, PAUSE, QDISC, RPS, SYSCTL, OFFLOAD, CONGESTION, GOVERNOR)
"""In the order in which they are set, but for the key that is `first`."""
KINDS: Final[Mapping[str, HostKey]] = {key.kind or key.name: key for key in reversed(KEYS)}
"""By the kinds of the agent's orders."""
# The agent holds 64; three are its caller's, for windows that are only where buffers start.
_MOST_SETTINGS: Final = 61


def _condition_name(value: object) -> str:
    text = parse_condition("condition", value)
    if text == DEFAULT:
        raise FieldError(f'condition "{text}": means the node defaults. Give it another name')
    return text


ConditionName = Annotated[str, PlainValidator(_condition_name), WithJsonSchema(SETTINGS["condition"].schema)]
_RESIZE: Final = Field(
    False, description="Windows are initial buffer sizes, which the kernel adapts. Default: fixed sizes."
)
_FIELDS: Final[dict[str, Any]] = {"resize": (Flag, _RESIZE)} | {key.name: (key.type, key.field) for key in KEYS}
ConditionSection: Final[type[Section]] = create_model(
    "ConditionSection",
    __base__=Section,
    __doc__="Host settings of all nodes during a group of tests. What is not named stays as it is.",
    **_FIELDS,
)


def condition_of(name: str, section: Section) -> Condition:
    """Return the host settings of a `ConditionSection`, in the order in which they are set."""
    given = {key: getattr(section, key.name) for key in sorted(KEYS, key=lambda key: not key.first)}
    settings = [setting for key, value in given.items() if value is not None for setting in key.settings(value)]
    return Condition(name, tuple(settings), getattr(section, "resize"))  # noqa: B009 — a model that is made


def condition_mistakes(document: Document, rig: Rig | None) -> Iterator[Mistake]:
    """Yield settings that contradict each other or the rig. The schema has reported settings that are wrong alone."""
    conditions = document.data.get("conditions")
    if conditions == {}:
        what = "conditions: is empty. Name one, as in mtu1500: {mtu: 1500}, or leave it out."
        yield document.mistake(("conditions",), what)
    found = (
        mistake
        for name, section in (conditions if isinstance(conditions, dict) else {}).items()
        if isinstance(section, dict)
        for mistake in _section_mistakes(document, name, section, rig)
    )
    yield from islice(found, MOST_FOUND)


def _section_mistakes(document: Document, name: str, section: Mapping[str, Any], rig: Rig | None) -> Iterator[Mistake]:
    path = ("conditions", name)
    for own in KEYS:
        yield from own.mistakes(document, path, section) if own.mistakes is not None else ()
    settings = sum(
        len(value) if isinstance(value, dict) and key != "qdisc" else value is not None
        for key, value in section.items()
        if key in ConditionSection.model_fields and key != "resize"
    )
    if settings > _MOST_SETTINGS:
        what = f'condition "{name}": sets more than {_MOST_SETTINGS} values, the most that an agent takes.'
        yield document.mistake(path, what, at_key=True)
    mtu = section.get("mtu")
    for key, switch in rig.switches.items() if rig is not None else ():
        if type(mtu) is int and switch.mtu is not None and switch.mtu < mtu <= MOST_MTU:
            what = f'mtu "{mtu}": switch {key} of rig {rig.name if rig else ""} carries {switch.mtu} at most.'
            yield document.mistake((*path, "mtu"), what)
