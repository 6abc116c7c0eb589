"""Compose the message of a morning: the night's news, and news of earlier nights that nobody was told yet."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final
from uuid import NAMESPACE_OID, uuid5

from rigctl.base.texts import printable, printable_lines
from rigctl.nightly.schedule import date_of, moment
from rigctl.nightly.state import Item
from rigctl.records import Night

MOST_CHARACTERS: Final = 65_536
"""Limit of GitHub's comments; other services have similar ones."""
_CUT: Final = "\n\n… The rest was left out: `rigctl regress` has it.\n"


@dataclass(frozen=True, slots=True)
class Message:
    """`title`: one sentence. `markdown`: all of it, with the title. `id`: the same while the news is the same."""

    id: str
    title: str
    markdown: str
    night: str  # its date
    outcome: str
    run: str | None


def message(scenario: str, rig: str, night: Night, items: Sequence[Item], zone: tzinfo | None = None) -> Message:
    """Return the message of the morning after `night`. `items`: at least one, the earliest first."""
    tonight = [item for item in items if item.due_at == night.due_at]
    earlier = [item for item in items if item.due_at != night.due_at]
    date = date_of(night.due_at, zone)
    same_date = [item for item in earlier if date_of(item.due_at, zone) == date]
    if tonight:
        title = f"{scenario} on {rig}, {date}: {printable(tonight[-1].headline)}"
    elif same_date:
        before = printable(same_date[-1].headline)
        title = f"{scenario} on {rig}, {date}: measured, nothing new; earlier on this date {before}"
    else:
        title = f"{scenario} on {rig}, {date_of(earlier[-1].due_at, zone)}: {printable(earlier[-1].headline)}"
    parts = [f"**{title}**"]
    parts += [printable_lines(item.markdown.strip()) for item in tonight if item.markdown.strip()]
    if not tonight:
        parts.append(f"The night of {date} was measured; nothing is new.")
    if tonight and night.run is not None:
        parts.append(f"Run `{night.run}`: `rigctl show {night.run}`, `rigctl regress {night.run}`.")
    listed = earlier if tonight else [item for item in earlier if item is not (same_date or earlier)[-1]]
    if listed:
        parts.append("Before it:")
        parts.append("\n".join(f"- {moment(item.due_at, zone)}: {printable(item.headline)}" for item in listed))
    parts += [printable_lines(item.markdown.strip()) for item in earlier if item.markdown.strip()]
    text = "\n\n".join(parts) + "\n"
    if len(text) > MOST_CHARACTERS:
        kept = text[: MOST_CHARACTERS - len(_CUT)]
        text = kept[: kept.rfind("\n")] + _CUT
    identity = str(uuid5(NAMESPACE_OID, repr((scenario, rig, items))))
    return Message(identity, title, text, date, str(night.outcome), night.run)
