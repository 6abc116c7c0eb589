"""The index of the search: a script file with a line for each run, as a page opened from a disk may load it."""

import json
from collections.abc import Iterable
from datetime import datetime

from rigctl.records import given_tags, tag_text
from rigctl.site.made import MadeRun
from rigctl.site.names import page_of_run


def index(runs: Iterable[MadeRun], script: str) -> str:
    """`script` with its data before it: of each run its page, date, scenario, rig, tags, title, status, and answer."""
    rows = [
        [
            page_of_run(run.run),
            f"{datetime.fromtimestamp(run.started_at):%Y-%m-%d %H:%M}",
            run.scenario,
            run.rig,
            [tag_text(name, value) for name, value in given_tags(run.tags).items()],
            run.title,
            "second measurement" if not run.is_night else str(run.status),
            run.run,
            run.answer,
        ]
        for run in sorted(runs, key=lambda own: own.run, reverse=True)
    ]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    return f'"use strict";\nconst RUNS = [\n{lines}\n];\n{script}'
