"""Samples shown in pages: `python docs/sample_blocks.py` writes each into the blocks that have its name as their title.

A copy, not an include of the site's, so that the pages can be read in the repository too.
"""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
_BLOCK: Final = re.compile(r'^(```text title="(reports/samples/[\w.-]+)[^"\n]*"\n)(.*?)^```$', re.MULTILINE | re.DOTALL)


def with_samples(text: str) -> str:
    """Return a page with the present text of each sample that it shows."""
    return _BLOCK.sub(lambda block: f"{block[1]}{_sample(block[2])}```", text)


def _sample(name: str) -> str:
    lines = (ROOT / name).read_text("utf-8").splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


if __name__ == "__main__":
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        made = with_samples(page.read_text("utf-8"))
        if made != page.read_text("utf-8"):
            page.write_text(made, "utf-8")
            print(page.relative_to(ROOT))
