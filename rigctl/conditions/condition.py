"""Convert the conditions of a scenario (named sets of host settings) to the host settings that agents set.

A value that the agent would refuse is reported as a mistake in the file, before any node is changed.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

from pydantic import Field, PlainValidator, WithJsonSchema, create_model

from rigctl.conditions.key import HostKey
from rigctl.conditions.keys import CONGESTION_SYSCTL, HOST_KEYS
from rigctl.records import Condition
from rigctl.rig.inventory import Rig
from rigctl.settings import DEFAULT, SETTINGS
from rigctl.settings.shape import parse_condition
from rigctl.yamlfile import FieldError, Mistake, YamlDocument, YamlSection
from rigctl.yamlfile.fields import Flag

KEYS_BY_KIND: Final[Mapping[str, HostKey]] = {key.kind or key.name: key for key in reversed(HOST_KEYS)}
"""Maps the kinds of settings in the agent's orders to the keys of conditions."""
# The agent takes 64 settings. `resize` needs three: both buffer sizes and tcp_moderate_rcvbuf.
_MOST_SETTINGS: Final = 61


def _condition_name(value: object) -> str:
    text = parse_condition("condition", value)
    if text == DEFAULT:
        raise FieldError(f'condition "{text}": this name means unchanged host settings. Choose another name')
    return text


ConditionName = Annotated[str, PlainValidator(_condition_name), WithJsonSchema(SETTINGS["condition"].schema)]
_RESIZE: Final = Field(
    False, description="true: the kernel resizes socket buffers; `window` is their initial size. false: a fixed size."
)
_FIELDS: Final[dict[str, Any]] = {"resize": (Flag, _RESIZE)} | {key.name: (key.type, key.field) for key in HOST_KEYS}
ConditionSection: Final[type[YamlSection]] = create_model(
    "ConditionSection",
    __base__=YamlSection,
    __doc__="Host settings of all nodes during a group of tests. Settings that are not named remain unchanged.",
    **_FIELDS,
)


def condition_of(name: str, section: YamlSection) -> Condition:
    """Return the condition of a `ConditionSection`, with host settings in the order in which agents set them."""
    given = {key: getattr(section, key.name) for key in sorted(HOST_KEYS, key=lambda key: not key.first)}
    settings = [setting for key, value in given.items() if value is not None for setting in key.settings(value)]
    return Condition(name, tuple(settings), getattr(section, "resize"))  # noqa: B009 — a model created at run time


def congestion_of(condition: Condition) -> str | None:
    """Return the default congestion control that a condition gives the nodes; None if it sets none."""
    return next((setting.value for setting in condition.settings if setting.name == CONGESTION_SYSCTL), None)


def condition_mistakes(document: YamlDocument, sections: Mapping[str, YamlSection], rig: Rig) -> Iterator[Mistake]:
    """Yield mistakes for settings that conflict with each other or with the rig."""
    for name, section in sections.items():
        path, keys = ("conditions", name), dict(section)
        for key in HOST_KEYS:
            yield from key.mistakes(document, path, keys) if key.mistakes is not None else ()
        if len(condition_of(name, section).settings) > _MOST_SETTINGS:
            what = f'condition "{name}": sets more than {_MOST_SETTINGS} values, the most that an agent takes.'
            yield document.mistake(path, what, at_key=True)
        for switch in rig.switches.values():
            if keys["mtu"] is not None and switch.mtu is not None and switch.mtu < keys["mtu"]:
                what = f'mtu "{keys["mtu"]}": is above {switch.mtu}, the MTU of switch {switch.key} in rig {rig.name}.'
                yield document.mistake((*path, "mtu"), what)
