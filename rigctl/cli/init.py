"""`rigctl init`: a bundled scenario, comments and all, as a file of one's own to start from."""

from pathlib import Path
from typing import Annotated

import typer


def init(
    name: Annotated[str | None, typer.Argument(help="The name of a bundled scenario.")] = None,
    destination: Annotated[
        Path | None, typer.Argument(metavar="[DEST]", help="A file or folder. Left out: NAME.yaml here.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the bundled scenarios and rigs.")] = False,
) -> None:
    """Copy a bundled scenario, to start from. Never overwrites a file."""
    from rigctl.errors import InputError

    if listed:
        for line in listing():
            typer.echo(line)
        return
    if name is None:
        raise InputError("init: which scenario? Give its name; rigctl init --list shows them.")
    path = copied(name, destination)
    shown = str(path) if path.is_absolute() or len(path.parts) > 1 else f"./{path}"
    typer.echo(f"{path}: a copy of the bundled scenario {name}, yours to change.")
    typer.echo("Next:")
    for command, does in (
        (f"rigctl plan {shown}", "what it would measure, touching no node"),
        (f"rigctl run {shown}", "measure, on the rig that the file names"),
        (f"rigctl run {shown} --rig my-rig.yaml", "measure on your own nodes"),
    ):
        typer.echo(f"  {command:<{len(shown) + 30}}  {does}")


def listing() -> list[str]:
    """The bundled scenarios and rigs, each with its title."""
    from rigctl.rig.schema import bundled_folder
    from rigctl.scenario.load import bundled_scenarios
    from rigctl.yamlfile import find_bundled, read_document

    lines: list[str] = []
    for what, files in (("Scenarios", bundled_scenarios()), ("Rigs", find_bundled(bundled_folder()))):
        lines.append(f"{what}:")
        width = max((len(name) for name in files), default=0)
        lines += [f"  {name:<{width}}  {read_document(path).data.get('title', '')}" for name, path in files.items()]
    return lines


def copied(name: str, destination: Path | None) -> Path:
    """Copies the scenario and gives the new file's path. Raises `InputError`; an existing file stays as it is."""
    from rigctl.errors import InputError
    from rigctl.scenario.load import bundled_scenarios
    from rigctl.yamlfile import suggestion

    bundled = bundled_scenarios()
    if name not in bundled:
        raise InputError(f'no bundled scenario "{name}".{suggestion(name, list(bundled))} See rigctl init --list.')
    target = destination if destination is not None else Path()
    try:
        if target.is_dir():
            target = target / f"{name}.yaml"
        with target.open("xb") as file:
            file.write(bundled[name].read_bytes())
    except FileExistsError:
        raise InputError(f"{target} is there already and stays as it is. Or: init {name} DEST.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{target}: cannot be written: {error}") from error
    return target
