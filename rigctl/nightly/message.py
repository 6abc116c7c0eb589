"""Composes the message about a night and delivers it, by POST to a webhook or as input of a command.

News is a failed or missed night, a missed bound, or a change found by `regress`. The message has the news of the night
and undelivered news of earlier nights. The number of retries is limited.
"""

import json
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from http.client import HTTPException
from typing import Final
from urllib.parse import urlsplit
from uuid import NAMESPACE_OID, uuid5

from rigctl.base.errors import InputError, RigError
from rigctl.base.processes import run_bounded
from rigctl.base.texts import printable, printable_lines
from rigctl.base.urls import hide_secrets, origin
from rigctl.base.version import __version__
from rigctl.nightly.schedule import Item, date_of, moment
from rigctl.nightly.settings import NightlySettings, fill_in, secrets_of
from rigctl.records import Night, NightOutcome

MOST_CHARACTERS: Final = 65_536
"""Most characters of a GitHub comment; other services have similar limits."""
_CUT: Final = "\n\n… The rest was left out: `rigctl regress` prints it.\n"


@dataclass(frozen=True, slots=True)
class News:
    """The news that `rigctl regress` found in a run: one sentence, and Markdown with the details."""

    headline: str
    markdown: str


@dataclass(frozen=True, slots=True)
class Message:
    """A message. `title` is one sentence, `markdown` the whole text. Messages with equal news have equal `id`s."""

    id: str
    title: str
    markdown: str
    night: str  # date on which the night was due
    outcome: str
    run: str | None


_BEFORE: Final[dict[NightOutcome | None, str]] = {
    NightOutcome.FAILED: "the night failed: ",
    NightOutcome.OVERDUE: "the night was ended at its deadline: ",
    NightOutcome.BUSY: "the rig was in use all the time: ",
    NightOutcome.MISSED: "the night was missed: ",
}
_MOST_UNMET: Final = 3


def night_sentence(night: Night) -> str:
    """Return the sentences on a night, most urgent first; empty for a night without news."""
    parts = []
    if night.reason is not None:
        parts.append(f"{'the night was ' if night.in_part else _BEFORE.get(night.outcome, '')}{night.reason}")
    if night.unmet:
        more = len(night.unmet) - _MOST_UNMET
        parts += [own.text for own in night.unmet[:_MOST_UNMET]]
        parts += [f"{more} more: rigctl show {night.run}."] if more > 0 else []
    if night.news is not None:
        parts.append(night.news)
    return " ".join(parts)


def message(night: Night, items: Sequence[Item]) -> Message:
    """Return the message sent after `night`. `items` are the undelivered news, at least one, earliest first."""
    tonight = [item for item in items if item.due_at == night.due_at]
    earlier = [item for item in items if item.due_at != night.due_at]
    date, series = date_of(night.due_at), f"{night.scenario} on {night.rig}"
    same_date = [item for item in earlier if date_of(item.due_at) == date]
    shown = (tonight or same_date or earlier)[-1]
    before = "measured, nothing new; earlier on this date " if same_date and not tonight else ""
    title = f"{series}, {date_of(shown.due_at)}: {before}{printable(shown.headline)}"
    parts = [f"**{title}**"]
    parts += [printable_lines(item.markdown.strip()) for item in tonight if item.markdown.strip()]
    if not tonight:
        parts.append(f"The night of {date} was measured; nothing is new.")
    if tonight and night.run is not None:
        parts.append(f"Run `{night.run}`: `rigctl show {night.run}`, `rigctl regress {night.run}`.")
    listed = [item for item in earlier if item is not shown]
    if listed:
        parts += ["Before it:", "\n".join(f"- {moment(item.due_at)}: {printable(item.headline)}" for item in listed)]
    parts += [printable_lines(item.markdown.strip()) for item in earlier if item.markdown.strip()]
    text = "\n\n".join(parts) + "\n"
    if len(text) > MOST_CHARACTERS:
        kept = text[: MOST_CHARACTERS - len(_CUT)]
        text = kept[: kept.rfind("\n")] + _CUT
    identity = uuid5(NAMESPACE_OID, repr((night.scenario, night.rig, items)))
    return Message(str(identity), title, text, date, str(night.outcome), night.run)


_PAUSES_S: Final = (2.0, 15.0, 60.0)
"""Pauses between attempts in seconds; there are four attempts in all."""
_ANSWER_S: Final = 15.0
"""Deadline of an attempt, even if the other side answers slowly."""
_AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_SHOWN: Final = 200


class _RetryableError(RigError):
    pass


def tell(
    message: Message,
    settings: NightlySettings,
    environment: Mapping[str, str],
    *,
    pauses_s: Sequence[float] = _PAUSES_S,
    answer_s: float = _ANSWER_S,
    command_s: float = 60.0,
) -> None:
    """Deliver a message as `settings` say. Raise `RigError` with the reason if every attempt failed."""
    if settings.notify is None:
        return
    secrets = secrets_of(settings.secrets, environment)
    if _is_address(settings.notify):
        request = _request(message, settings, secrets)
        _try(lambda: _run_within(answer_s, lambda: _post(request, answer_s)), pauses_s)
    else:
        command = settings.notify
        _try(lambda: _run_command(command, message, secrets, command_s), pauses_s)


def _is_address(notify: str) -> bool:
    return notify.startswith(("http://", "https://"))


def check_channel(settings: NightlySettings, environment: Mapping[str, str]) -> None:
    """Raise `InputError` if messages cannot be delivered: a secret is missing, or the address is invalid."""
    if settings.notify is None:
        return
    secrets = secrets_of(settings.secrets, environment)
    for text in settings.headers.values():
        fill_in(text, secrets)
    if _is_address(settings.notify) and not urlsplit(fill_in(settings.notify, secrets)).hostname:
        raise InputError(
            f"--notify {printable(hide_secrets(settings.notify))}: expected an address, as https://chat.example.org/hook"
        )


def _request(message: Message, settings: NightlySettings, secrets: Mapping[str, str]) -> urllib.request.Request:
    document = asdict(message)
    document["text"] = document.pop("markdown")
    as_json = settings.notify_format == "json"
    body = (json.dumps(document, ensure_ascii=False) if as_json else message.markdown).encode()
    kind = "application/json" if as_json else "text/markdown; charset=utf-8"
    headers = {name: fill_in(value, secrets) for name, value in settings.headers.items()}
    headers = {"Content-Type": kind, "User-Agent": f"rigctl/{__version__}", "Idempotency-Key": message.id} | headers
    address = fill_in(settings.notify or "", secrets)
    try:
        return urllib.request.Request(address, body, headers, method="POST")  # noqa: S310 — `_is_address` checked it
    except ValueError:
        raise RigError(f"--notify: {origin(address)} is not an address") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: the POST would become a GET, and its secrets would go to another server."""

    def redirect_request(self, *_: object) -> None:
        return None


def _post(request: urllib.request.Request, answer_s: float) -> None:
    opener = urllib.request.build_opener(_NoRedirect())
    place = origin(request.full_url)
    try:
        opener.open(request, timeout=answer_s).close()
    except urllib.error.HTTPError as error:
        with error:
            why = f"{place} answered {error.code} {printable(str(error.reason))[:_SHOWN]}"
            if 300 <= error.code < 400:
                moved = origin(error.headers.get("Location", ""))
                raise RigError(f"{why}: it has moved to {moved}. Give that address to --notify") from None
        raise (_RetryableError if error.code in _AGAIN else RigError)(why) from None
    except OSError as error:  # including URLError and timeouts
        reason = getattr(error, "reason", None) or error
        raise _RetryableError(f"{place}: {printable(str(reason))[:_SHOWN]}") from None
    except HTTPException as error:  # the server's answer is not HTTP
        raise _RetryableError(f"{place}: {type(error).__name__}") from None
    except ValueError as error:  # a header is invalid
        raise RigError(f"{place}: {type(error).__name__}") from None


def _run_within(limit_s: float, attempt: Callable[[], None]) -> None:
    """Run `attempt` in a thread with a deadline, because a socket's timeout starts again with every byte."""
    ended: Future[None] = Future()

    def work() -> None:
        try:
            attempt()
        except Exception as error:  # `ended.result` raises the error again
            ended.set_exception(error)
        else:
            ended.set_result(None)

    threading.Thread(target=work, daemon=True).start()
    try:
        ended.result(limit_s)
    except TimeoutError:
        raise _RetryableError(f"no answer within {limit_s:g} s") from None


def _run_command(command: str, message: Message, environment: Mapping[str, str], limit_s: float) -> None:
    """Run a command with the message as its input. Raise `_RetryableError` if the command fails."""
    fields = {name: getattr(message, name) or "" for name in ("id", "title", "outcome", "night", "run")}
    variables = {f"RIGCTL_{name.upper()}": value for name, value in fields.items()}
    shown = hide_secrets(command)
    try:
        text = message.markdown.encode("utf-8", "replace")
        words = ["/bin/sh", "-c", f"exec >/dev/null\n{command}"]
        done = run_bounded(words, limit_s, text=text, environment={**environment, **variables})
    except subprocess.TimeoutExpired:
        raise _RetryableError(f"{shown}: not finished within {limit_s:g} s") from None
    except OSError as error:
        raise _RetryableError(f"{shown}: cannot be run: {error.strerror or error}") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        last = f": {hide_secrets(printable(lines[-1])[:_SHOWN])}" if lines else ""
        raise _RetryableError(f"{shown}: exit code {done.returncode}{last}")


def _try(attempt: Callable[[], None], pauses_s: Sequence[float]) -> None:
    for pause_s in (*pauses_s, None):
        try:
            attempt()
        except _RetryableError as error:
            if pause_s is None:
                raise RigError(f"--notify: {error} ({len(pauses_s) + 1} attempts)") from None
            time.sleep(pause_s)
        except RigError as error:
            raise RigError(f"--notify: {error}") from None
        else:
            return
