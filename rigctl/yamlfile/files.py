"""Finding a YAML file by path or bundled name, and reading its text: UTF-8, at most 1 MiB, a regular file."""

import difflib
import stat
from pathlib import Path
from typing import Final

from rigctl.base.errors import InputError
from rigctl.base.texts import printable
from rigctl.yamlfile.compose import parse_document, span_of_offset
from rigctl.yamlfile.document import Document, mistake_at
from rigctl.yamlfile.mistakes import Mistake, MistakesError, suggestion

MAX_BYTES: Final = 1024 * 1024
_ENDINGS: Final = (".yaml", ".yml")


def find_bundled(folder: Path) -> dict[str, Path]:
    """Return the YAML files in `folder` by name without ending, sorted."""
    return {path.stem: path for path in sorted(folder.glob("*.yaml"), key=lambda path: path.stem)}


def find(reference: str, *, what: str, bundled: Path, relative_to: Path | None = None) -> Path:
    """Return the file that `reference` names: a path from `relative_to` or the working folder, or a bundled name.

    It is a path if it ends with .yaml or .yml, holds a slash, or names a file. `what` is "scenario" or "rig".
    Raise `InputError` with the bundled names and a suggestion if there is no such file.
    """
    names = find_bundled(bundled)
    shown = printable(reference)[:200]
    if not reference.strip() or "\0" in reference:
        raise InputError(f'{what} "{shown}": expected a file, or one of the bundled: {", ".join(names)}.')
    path = Path(reference)
    try:
        path = (relative_to or Path()) / path.expanduser()
        is_path = reference.endswith(_ENDINGS) or "/" in reference
        exists = path.exists() if is_path else path.is_file()
    except (OSError, RuntimeError) as error:
        raise InputError(f'{what} "{shown}": {error}') from error
    if exists:
        return path
    if is_path:
        raise InputError(f'{what} "{shown}": there is no such file.{_beside(path)}')
    if reference in names:
        return names[reference]
    raise InputError(f'unknown {what} "{shown}".{_bundled_hint(reference, what, list(names))}')


def read_document(path: Path) -> Document:
    """Return the YAML mapping in `path`. Raise `MistakesError` if there is none."""
    return parse_document(str(path), read_text(path))


def read_text(path: Path) -> str:
    """Return the text in `path`. Raise `MistakesError` if it is too large or not UTF-8."""
    name = str(path)
    try:
        data = _read(path)
    except OSError as error:
        raise MistakesError([Mistake(name, f"cannot be read: {error.strerror or error}.")]) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        good = data[: error.start].decode("utf-8-sig", "replace")
        what = f"byte 0x{data[error.start]:02X} is not UTF-8. Save the file as UTF-8."
        shown = data.decode("utf-8-sig", "replace")
        raise MistakesError([mistake_at(name, shown, span_of_offset(good, len(good)), what)]) from error


def _read(path: Path) -> bytes:
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise MistakesError([Mistake(str(path), "is a folder: expected a YAML file.")])
    if not stat.S_ISREG(status.st_mode):
        # A pipe or device could block or never end.
        raise MistakesError([Mistake(str(path), "is not a regular file: expected a YAML file.")])
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        size = max(status.st_size, len(data))
        what = f"a file of {size:,} bytes is too large: at most {MAX_BYTES:,} bytes (1 MiB) are read. "
        raise MistakesError([Mistake(str(path), what + "Is it a scenario or rig file?")])
    return data


def _beside(path: Path) -> str:
    others = {other.stem: other.name for ending in _ENDINGS for other in path.parent.glob(f"*{ending}")}
    near = difflib.get_close_matches(path.stem, sorted(others), n=1)
    return f' Did you mean "{others[near[0]]}"?' if near else ""


def _bundled_hint(reference: str, what: str, names: list[str]) -> str:
    near = suggestion(reference, names)
    listed = "" if near.startswith(" Known") else f" Bundled: {', '.join(names)}."
    return (
        f"{near.replace(' Known:', ' Bundled:')}{listed} For a file of your own give its path, as in ./my-{what}.yaml."
    )
