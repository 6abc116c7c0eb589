"""`rigctl publish`: a store as a static site."""

import signal
import time
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from rigctl.base.errors import Interrupted
from rigctl.cli.options import Json, StoreAddress


def publish(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the site: new, empty, or a site.")],
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Title of the site; later publishes keep it.")
    ] = None,
    as_json: Json = False,
    store: StoreAddress = None,
) -> None:
    """Write the store as a static site: news, trends, a calendar, every run. Only what changed is written again."""
    from rigctl.report.words.text import plural
    from rigctl.site.publish import publish as put
    from rigctl.store import open_store

    signal.signal(signal.SIGTERM, _interrupted)
    began_s = time.monotonic()
    with open_store(store, create=False) as opened:
        done = put(opened, folder, time.time(), title)
    took_s = time.monotonic() - began_s
    if as_json:
        from rigctl.cli.publish_document import PublishDocument

        document = PublishDocument(
            index=str(done.index.resolve()),
            answer=done.answer,
            runs=done.runs,
            scenarios=done.courses,
            news=done.news,
            written=list(done.written),
            removed=list(done.removed),
            damaged=list(done.damaged),
            took_s=round(took_s, 3),
        )
        print(document.model_dump_json(indent=2))
        return
    print(done.answer)
    for message in done.damaged:
        print(f"left out: {message}")
    print(f"{plural(len(done.written), 'file')} written in {took_s:.1f} s, of {plural(done.runs, 'run')}")
    print(done.index.resolve())


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    raise Interrupted("rigctl publish was ended by a signal. The next call completes the site")
