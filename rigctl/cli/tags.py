"""Tags of runs as users write them: `firmware=1.2.3`, or a name alone."""

import re
from collections.abc import Sequence
from typing import Final

from rigctl.base.errors import InputError
from rigctl.base.texts import printable
from rigctl.records import OWN_TAGS

MOST_NAME: Final = 64  # as store.schema has it
MOST_VALUE: Final = 200
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)


def tags_of(given: Sequence[str] | None, option: str) -> dict[str, str]:
    """`NAME=VALUE…` by name; of a name alone the value is empty. Raises `InputError`; `option` is what they follow."""
    found: dict[str, str] = {}
    for text in given or ():
        name, _, value = text.partition("=")
        value = value.strip()
        check_name(name, option)
        if len(value) > MOST_VALUE or printable(value) != value:
            raise InputError(
                f"{option} {name}=…: a value is one line of at most {MOST_VALUE} characters, as in firmware=1.2.3"
            )
        if found.get(name, value) != value:
            raise InputError(f'{option} {name}: is given twice, as "{found[name]}" and "{value}". Name it once')
        found[name] = value
    return found


def check_name(name: str, option: str, reserved: bool = True) -> None:
    """Refuse what is no name of a tag, and with `reserved` those that rigctl gives itself."""
    if len(name) > MOST_NAME or not _NAME.fullmatch(name):
        shown = printable(name[: MOST_NAME + 1])
        raise InputError(
            f'{option} "{shown}": is no tag. A tag is NAME=VALUE; its name has letters, digits, ".", "_" and "-", '
            f"at most {MOST_NAME}, as in firmware=1.2.3"
        )
    if reserved and name.lower().startswith(OWN_TAGS):
        raise InputError(f'{option} {name}: names that begin with "{OWN_TAGS}" are for rigctl itself. Choose another')
