"""`rigctl init`: a bundled scenario or rig, comments and all, as a file of one's own to start from.

Its first line names the schema of such files, for editors with the YAML language server.
"""

from pathlib import Path
from typing import Annotated

import typer

from rigctl.cli.completion import rig_names, scenario_names


def _names(incomplete: str) -> list[str]:
    return list(dict.fromkeys([*scenario_names(incomplete), *rig_names(incomplete)]))


def init(
    name: Annotated[
        str | None, typer.Argument(help="The name of a bundled scenario or rig.", autocompletion=_names)
    ] = None,
    destination: Annotated[
        Path | None,
        typer.Argument(metavar="DEST", help="A file or folder (default: NAME.yaml here, NAME-rig.yaml for a rig)."),
    ] = None,
    rig: Annotated[bool, typer.Option("--rig", help="Copy the rig of that name, not the scenario.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the bundled scenarios and rigs.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --list: print JSON.")] = False,
) -> None:
    """Copy a bundled scenario or rig, to start from. Never overwrites a file."""
    from rigctl.base.errors import InputError
    from rigctl.rig.schema import bundled_rigs
    from rigctl.scenario.load import bundled_scenarios

    if as_json and not listed:
        raise InputError("init: --json is for --list")
    if listed:
        typer.echo(_listing_json() if as_json else "\n".join(listing()))
        return
    if name is None:
        raise InputError("init: give the name of a scenario or a rig; rigctl init --list shows them")
    is_rig = rig or (name in bundled_rigs() and name not in bundled_scenarios())
    path = copied(name, destination, rig=is_rig)
    shown = str(path) if path.is_absolute() or len(path.parts) > 1 else f"./{path}"
    typer.echo(f"{path}: a copy of the bundled {'rig' if is_rig else 'scenario'} {name}.")
    typer.echo("Next:")
    commands = _rig_commands(shown) if is_rig else _scenario_commands(shown)
    width = max(len(command) for command, _ in commands)
    for command, does in commands:
        typer.echo(f"  {command:<{width}}  {does}")
    if not is_rig and name in bundled_rigs():
        typer.echo(f"The bundled rig of the same name: rigctl init --rig {name}")


def _scenario_commands(shown: str) -> list[tuple[str, str]]:
    return [
        (f"rigctl plan {shown}", "show its tests; connects to no node"),
        (f"rigctl run {shown}", "measure on the rig named in the file"),
        (f'rigctl run {shown} --rig my-rig.yaml --set "pairs=A->B"', "measure between nodes A and B of your own rig"),
    ]


def _rig_commands(shown: str) -> list[tuple[str, str]]:
    return [
        (f"rigctl plan SCENARIO --rig {shown}", "show the tests on it; connects to no node"),
        (f"rigctl run SCENARIO --rig {shown}", "measure on it"),
        (f"rigctl rig up {shown}", "keep a virtual rig up between runs"),
    ]


def listing() -> list[str]:
    """The bundled scenarios and rigs, each with its title."""
    lines: list[str] = []
    for what, files in zip(("Scenarios", "Rigs"), _bundled(), strict=True):
        lines.append(f"{what}:")
        width = max((len(name) for name, _, _ in files), default=0)
        lines += [f"  {name:<{width}}  {title}" for name, title, _ in files]
    return lines


def _listing_json() -> str:
    from rigctl.cli.short_documents import BundledFile, InitListDocument

    scenarios, rigs = (
        [BundledFile(name=name, title=title, file=str(path)) for name, title, path in files] for files in _bundled()
    )
    return InitListDocument(scenarios=scenarios, rigs=rigs).model_dump_json(indent=2)


def _bundled() -> tuple[list[tuple[str, str, Path]], list[tuple[str, str, Path]]]:
    """Return name, title and file of each bundled scenario, and of each bundled rig."""
    from rigctl.rig.schema import bundled_folder
    from rigctl.scenario.load import bundled_scenarios
    from rigctl.yamlfile import find_bundled, read_document

    def described(files: dict[str, Path]) -> list[tuple[str, str, Path]]:
        return [(name, str(read_document(path).data.get("title", "")), path) for name, path in files.items()]

    return described(bundled_scenarios()), described(find_bundled(bundled_folder()))


def copied(name: str, destination: Path | None, *, rig: bool = False) -> Path:
    """Copies the file and gives the new one's path. Raises `InputError`; an existing file stays as it is."""
    from rigctl.base.errors import InputError
    from rigctl.base.resources import modeline
    from rigctl.rig.schema import bundled_folder
    from rigctl.scenario.load import bundled_scenarios
    from rigctl.yamlfile import find_bundled, suggestion

    rigs = find_bundled(bundled_folder())
    bundled = rigs if rig else bundled_scenarios()
    if name not in bundled:
        what = "rig" if rig else "scenario or rig"
        known = list(dict.fromkeys(bundled if rig else [*bundled, *rigs]))
        raise InputError(f'no bundled {what} "{name}".{suggestion(name, known)} See rigctl init --list.')
    target = destination if destination is not None else Path()
    try:
        if target.is_dir():
            target = target / (f"{name}-rig.yaml" if rig else f"{name}.yaml")
        with target.open("xb") as file:
            file.write(modeline("rig" if rig else "scenario").encode() + bundled[name].read_bytes())
    except FileExistsError:
        option = "--rig " if rig else ""
        raise InputError(f"{target} exists. Name another file, as in: init {option}{name} DEST.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{target}: cannot be written: {error}") from error
    return target
