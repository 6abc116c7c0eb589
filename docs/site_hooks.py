"""What mkdocs does not do by itself: pages of a folder in the navigation, files from outside of docs/.

A link to `reports/samples/…` or `CHANGELOG.md` is right in the repository; in the site they have places of their own.
"""

import posixpath
import re
from pathlib import Path
from typing import Final, TypeAlias

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

Nav: TypeAlias = "str | list[Nav] | dict[str, Nav]"
ROOT: Final = Path(__file__).parents[1]
PLACES: Final = {
    "reports/samples": "samples",
    "examples": "examples",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
}
"""Of the repository, and where it is in the site."""
BOOSTS: Final = {"tutorial.md": 4.0, "how-to": 4.0, "reference": 2.0, "explanation": 2.0}
"""How much more a word counts for the search on these pages than in decisions and measurements."""
_LINK: Final = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """`decisions/*` in the navigation: each page of that folder that is not named elsewhere, by its name."""
    navigation = config.nav or []
    config.nav = _expanded(navigation, set(_named(navigation)))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path, place in PLACES.items():
        source = ROOT / path
        for each in sorted(source.rglob("*")) if source.is_dir() else [source]:
            if each.is_file() and not each.name.endswith((".py", ".db")):
                name = posixpath.join(place, each.relative_to(source).as_posix()) if source.is_dir() else place
                files.append(File.generated(config, name, abs_src_path=str(each)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    source = Path(page.file.abs_src_path or "").relative_to(ROOT).as_posix()
    page.meta.setdefault("search", {"boost": BOOSTS.get(page.file.src_uri.partition("/")[0], 1.0)})
    return _LINK.sub(lambda found: _in_site(found[1], source, page.file.src_uri), markdown)


def _in_site(link: str, source: str, page: str) -> str:
    """Return the link from `page` of the site to what `link` means in the file `source` of the repository."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    for path, place in PLACES.items():
        if target == path or target.startswith(f"{path}/"):
            return posixpath.relpath(place + target.removeprefix(path), posixpath.dirname(page) or ".")
    if target.startswith("docs/"):
        return posixpath.relpath(target.removeprefix("docs/"), posixpath.dirname(page) or ".")
    return link


def _named(nav: Nav) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [name for part in parts for name in _named(part)]


def _expanded(nav: Nav, named: set[str]) -> Nav:
    if isinstance(nav, dict):
        return {title: _expanded(part, named) for title, part in nav.items()}
    if not isinstance(nav, list):
        return nav
    found: list[Nav] = []
    for part in nav:
        if isinstance(part, str) and part.endswith("/*"):
            pages = sorted((ROOT / "docs" / part.removesuffix("/*")).glob("*.md"))
            found += [name for path in pages if (name := path.relative_to(ROOT / "docs").as_posix()) not in named]
        else:
            found.append(_expanded(part, named))
    return found
