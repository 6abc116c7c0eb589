"""Write the store as a static site: news, trends, a calendar, every run.

Only files whose content changed are written again.
"""

import signal
import time
from pathlib import Path
from typing import Annotated

import typer
from pydantic import Field

from rigctl.cli.errors import end_by
from rigctl.cli.options import Json, StoreAddress
from rigctl.cli.output import Versioned, at
from rigctl.findings.text import plural
from rigctl.store import open_store


class PublishDocument(Versioned):
    """The site that `rigctl publish` wrote."""

    index: str = Field(description="The front page.")
    answer: str = at("done.answer", "The sentence at the top of the front page.")
    runs: int = at("done.runs")
    scenarios: int = at("done.scenarios", "Combinations of a scenario and a rig.")
    news: int = at("done.news", "Number of news entries; the feed has at most the latest hundred.")
    written: list[str] = at("done.written", "Files that were written, relative to the folder.")
    removed: list[str] = at("done.removed", "Runs on the site that are no longer in the store; their pages now say so.")
    damaged: list[str] = at("done.damaged", "A message for each run that cannot be read.")
    took_s: float


def write_site(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the site: new, empty, or of an older site.")],
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Title of the site; later publishes keep it.")
    ] = None,
    as_json: Json = False,
    store: StoreAddress = None,
) -> None:
    from rigctl.site.publish import publish

    end_by([signal.SIGTERM], "rigctl publish was ended by a signal. The next call completes the site")
    began_s = time.monotonic()
    with open_store(store, create=False) as opened:
        done = publish(opened, folder, time.time(), title)
    took_s = time.monotonic() - began_s
    index = done.index.resolve()
    if as_json:
        print(PublishDocument.text_of(index=str(index), done=done, took_s=round(took_s, 3)))
        return
    print(done.answer)
    for message in done.damaged:
        print(f"left out: {message}")
    print(f"{plural(len(done.written), 'file')} written in {took_s:.1f} s, of {plural(done.runs, 'run')}")
    print(index)
