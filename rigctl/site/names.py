"""Names of the pages of a site: they stay the same, every file system takes them, and they lead into no folder."""

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import quote

INDEX: Final = "index.html"
FEED: Final = "feed.xml"
RUNS: Final = "runs"
COURSES: Final = "scenarios"
_UNFIT: Final = re.compile(r"[^a-z0-9._-]+")
_MOST: Final = 48


@dataclass(frozen=True, slots=True, order=True)
class Course:
    """A scenario on a rig, by the names that runs and nights have."""

    scenario: str
    rig: str

    def __str__(self) -> str:
        return f"{self.scenario} on {self.rig}"

    @property
    def name(self) -> str:
        return f"{plain(self.scenario)}@{plain(self.rig)}"

    @property
    def page(self) -> str:
        return f"{COURSES}/{self.name}.html"


def plain(text: str) -> str:
    """Return `text` as a part of a file's name. Different texts give names that differ even if case does not count.

    >>> plain("gigablox"), plain("../Lab")
    ('gigablox', 'lab-c29d61')
    """
    safe = _UNFIT.sub("-", text.lower()).strip("-.")[:_MOST]
    return safe if safe and safe == text else f"{safe or 'name'}-{sha256(text.encode()).hexdigest()[:6]}"


def page_of_run(run: str) -> str:
    return f"{RUNS}/{plain(run)}.html"


def link(page: str, target: str) -> str:
    """Return the reference from one page to another, both by their path in the site.

    >>> link("runs/a.html", "scenarios/x@y.html")
    '../scenarios/x%40y.html'
    """
    up = "../" * (len(PurePosixPath(page).parts) - 1)
    path, mark, part = target.partition("#")
    return f"{up}{quote(path)}{mark}{part}"
