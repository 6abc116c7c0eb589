"""Make the site's pages as HTML, with the templates of `reports/templates/site`, and its Atom feed as XML."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import Final
from uuid import UUID, uuid5
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from jinja2 import Environment
from markupsafe import Markup

from rigctl.analysis.nights.regressions import Regressions, Shift
from rigctl.base.resources import templates
from rigctl.base.units import local_text
from rigctl.base.version import __version__
from rigctl.findings.text import plural
from rigctl.records import tag_text, user_tags
from rigctl.report.blocks import Column, Entry, Table
from rigctl.report.printers.html import STYLES, environment, with_script
from rigctl.report.regressions import changes_table
from rigctl.site.folder import FEED, INDEX, page_link, page_of_run
from rigctl.site.nights import FeedEntry, NightState, ScenarioNights, SiteRun, months
from rigctl.site.trends import KEYS, main_trend, run_numbers, trends

_MOST_NEWS: Final = 12
_CARDS: Final = 6
"""The front page shows this number of scenario cards; further cards are folded away."""
_TRENDS: Final = 4
"""A scenario page shows this number of trends unfolded, or all trends with a change if those are more."""


def front(title: str, judged: Sequence[ScenarioNights], now: float) -> str:
    """Return the front page as HTML. The news of each scenario's latest run is on its card, not in the list of news."""
    earlier = (entry for own in judged for entry in own.news if not entry.latest)
    news = sorted(earlier, key=lambda entry: (-entry.at, entry.key))
    scenarios = sorted(
        judged,  # at equal urgency, first those whose latest night, not an earlier one, is so urgent
        key=lambda own: (own.state.urgency, own.latest is None or own.latest.state is not own.state, own.scenario),
    )
    return _print(
        "site/index.html.j2",
        INDEX,
        title=title,
        answer=site_answer(judged),
        scenarios=scenarios,
        news=news[:_MOST_NEWS],
        drawn=[main_trend(own) for own in scenarios],
        most=_CARDS,
        nexts=[_next_night_text(own.next_due_at, now) for own in scenarios],
        written=local_text(now, "%Y-%m-%d %H:%M %Z"),
    )


def scenario(judged: ScenarioNights, now: float) -> str:
    """Return the page of a scenario on a rig as HTML."""
    drawn = sorted(trends(judged), key=lambda trend: not trend.shifts)
    unmet = [entry for entry in judged.news[::-1] if entry.state is NightState.UNEXPECTED and not entry.latest]
    return _print(
        "site/scenario.html.j2",
        judged.scenario.page,
        judged=judged,
        changes=None if judged.regressions is None else changes(judged.regressions),
        unmet=unmet[:_MOST_NEWS],
        expected=_next_night_text(judged.next_due_at, now),
        drawn=drawn,
        open=max(_TRENDS, sum(bool(trend.shifts) for trend in drawn)),
        keys=KEYS,
        months=months(judged.slots) if judged.is_nightly else (),
        numbers=run_numbers(judged.slots),
        states=[state for state in NightState if any(slot.state is state for slot in judged.slots)],
        runs=sorted(judged.runs, key=lambda run: run.run, reverse=True),
    )


def changes(regressions: Regressions) -> Table | None:
    """Return the table of level changes, latest first, with their numbers in the charts; None without changes."""
    history = regressions.history
    if not history:
        return None
    table = changes_table(regressions)
    rows = [
        replace(row, entries=(Entry(str(number), number), *row.entries, Entry(_state(shift, regressions))))
        for number, (row, shift) in enumerate(zip(table.rows, history, strict=True), 1)
    ]
    columns = (Column("No.", "", "requested"), *table.columns, Column("State", "", "requested", words=True))
    return replace(table, columns=columns, rows=tuple(reversed(rows)), label="Changes of level")


def _state(shift: Shift, regressions: Regressions) -> str:
    nights = {info.run: night for night, info in enumerate(regressions.nights.runs)}
    after = [level for level in regressions.levels if nights[level.run] >= shift.found]
    if after:
        level = min(after, key=lambda own: nights[own.run])
        return f"accepted by {level.who}: {level.because}"
    if shift.found == len(nights) - 1:
        return "new"
    standing = {own.series.subject for event in regressions.standing for own in (event, *event.explains)}
    return "not accepted" if shift.series.subject in standing else "over"


def page_of_removed(page: str, what: str, home: str, home_name: str) -> str:
    """Return the page that says that the run or scenario `what` has left the store. It links to the page `home`."""
    return _print("site/removed.html.j2", page, what=what, home=home, home_name=home_name)


def site_answer(judged: Sequence[ScenarioNights]) -> str:
    """Return one sentence on the latest runs of all scenarios."""
    if not judged:
        return "No run is in the store yet."
    latest = [(own.latest, own.scenario) for own in judged if own.latest is not None]
    told = [(slot, scenario) for slot, scenario in latest if slot.state is not NightState.MEASURED]
    if told:
        slot, scenario = min(told, key=lambda own: own[0].state.urgency)
        rest = f"; {plural(len(told) - 1, 'more scenario')} below" if len(told) > 1 else ""
        return f"{scenario}, {slot.label.partition('. ')[0].rstrip('.')}{rest}."
    standing = sum(own.standing for own in judged)
    earlier = f"; {plural(standing, 'earlier change')} for the worse not accepted" if standing else ""
    run = "night" if all(own.is_nightly for own in judged) else "run"
    when = f" in the latest {run}, {max(slot.day for slot, _ in latest)}" if latest else ""
    return f"Nothing changed in {plural(len(judged), 'scenario')}{when}{earlier}."


def _next_night_text(at: float | None, now: float) -> str:
    if at is None:
        return ""
    return f"Next expected {_minute(at)}." if at > now else f"The next was expected {_minute(at)}."


def _print(template: str, page: str, **values: object) -> str:
    style = "".join((templates() / name).read_text("utf-8") for name in (*STYLES, "site/site.css"))
    values |= {"style": Markup(style), "to": partial(page_link, page)}  # noqa: S704 — own files
    return with_script(_environment().get_template(template).render(**values))


@cache
def _environment() -> Environment:
    made = environment()
    made.filters |= {"minute": _minute, "run_page": page_of_run, "tags": _tags}
    made.globals["index"] = INDEX
    return made


def _minute(at: float) -> str:
    return f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M}"


def _tags(run: SiteRun) -> list[str]:
    return [tag_text(name, value) for name, value in user_tags(run.info.tags).items()]


MOST_ENTRIES: Final = 100
"""Most entries of the feed."""
_ATOM: Final = "http://www.w3.org/2005/Atom"
_UNFIT: Final = re.compile(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Matches characters that XML 1.0 cannot hold."""


def feed(site: UUID, title: str, entries: Sequence[FeedEntry], latest_at: float) -> str:
    """Return the Atom feed (RFC 4287), latest entries first. `latest_at` is when the last run of the site ended.

    An entry's id is derived from the key of its news, so it never changes. URLs are relative, because the URL of the
    site is unknown.
    """
    latest = sorted(entries, key=lambda entry: (-entry.at, entry.key))[:MOST_ENTRIES]
    updated = max([latest_at, *(entry.at for entry in latest)])
    root = _element(Element("feed", xmlns=_ATOM), site.urn, title, updated, INDEX)
    SubElement(root, "link", rel="self", type="application/atom+xml", href=FEED)
    SubElement(SubElement(root, "author"), "name").text = "rigctl"
    SubElement(root, "generator", version=__version__).text = "rigctl"
    for entry in latest:
        own = _element(SubElement(root, "entry"), uuid5(site, entry.key).urn, entry.title, entry.at, entry.page)
        SubElement(own, "category", term=str(entry.state))
        SubElement(own, "content", type="text").text = _UNFIT.sub("\ufffd", "\n".join(entry.sentences))
    indent(root)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{tostring(root, encoding='unicode')}\n"


def _element(element: Element, id_: str, title: str, at: float, page: str) -> Element:
    SubElement(element, "id").text = id_
    SubElement(element, "title").text = _UNFIT.sub("\ufffd", title)
    SubElement(element, "updated").text = f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"
    SubElement(element, "link", rel="alternate", type="text/html", href=page_link(FEED, page))
    return element
