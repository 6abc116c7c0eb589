"""Copy a bundled scenario or rig, to start from.

Never overwrites a file.
"""

from pathlib import Path
from typing import Annotated, Final

import typer

from rigctl.base.errors import InputError
from rigctl.base.resources import modeline
from rigctl.cli.options import complete_either
from rigctl.cli.output import Model, Versioned, plain_console, print_table
from rigctl.rig.load import rig_names, rigs_folder
from rigctl.scenario.load import find_scenarios
from rigctl.yamlfile import suggestion
from rigctl.yamlfile.read import find_bundled, read_document


class BundledFile(Model):
    """A scenario or rig that comes with rigctl."""

    name: str
    title: str
    file: str


class InitListDocument(Versioned):
    """The bundled scenarios and rigs."""

    scenarios: list[BundledFile]
    rigs: list[BundledFile]


def copy_scenario_or_rig(
    name: Annotated[
        str | None, typer.Argument(help="The name of a bundled scenario or rig.", autocompletion=complete_either)
    ] = None,
    destination: Annotated[
        Path | None,
        typer.Argument(metavar="DEST", help="Target file or folder (default: NAME.yaml, NAME-rig.yaml for a rig)."),
    ] = None,
    rig: Annotated[bool, typer.Option("--rig", help="Copy the rig of this name, not the scenario.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the bundled scenarios and rigs.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --list: print JSON.")] = False,
) -> None:
    if as_json and not listed:
        raise InputError("init: --json is for --list")
    if listed:
        files = list_bundled()
        if as_json:
            print(files.model_dump_json(indent=2))
            return
        for head, known in (("Scenarios", files.scenarios), ("Rigs", files.rigs)):
            print_table(plain_console(), [head, ""], [[file.name, file.title] for file in known], left={head, ""})
        return
    if name is None:
        raise InputError("init: give the name of a scenario or a rig; rigctl init --list shows them")
    is_rig = rig or (name in rig_names() and name not in find_scenarios())
    path = copy_bundled(name, destination, rig=is_rig)
    name_or_path = str(path) if path.is_absolute() or len(path.parts) > 1 else f"./{path}"
    print(f"{path}: a copy of the bundled {'rig' if is_rig else 'scenario'} {name}.\nNext:")
    commands = {command.format(name_or_path): does for command, does in (_RIG if is_rig else _SCENARIO).items()}
    width = max(map(len, commands))
    for command, does in commands.items():
        print(f"  rigctl {command:<{width}}  {does}")
    if not is_rig and name in rig_names():
        print(f"To copy the bundled rig of the same name: rigctl init --rig {name}")


_SCENARIO: Final = {
    "plan {}": "show its tests; connects to no node",
    "run {}": "measure on the rig named in the file",
    'run {} --rig my-rig.yaml --set "pairs=A->B"': "measure between nodes A and B of your own rig",
}
_RIG: Final = {
    "plan SCENARIO --rig {}": "show the tests on it; connects to no node",
    "run SCENARIO --rig {}": "measure on it",
    "rig up {}": "keep a virtual rig up between runs",
}
"""Commands that the user may call next, and what each command does. `{}` stands for the copied file."""


def list_bundled() -> InitListDocument:
    """Return the bundled scenarios and rigs."""

    def describe(files: dict[str, Path]) -> list[BundledFile]:
        return [
            BundledFile(name=name, title=str(read_document(path).data.get("title", "")), file=str(path))
            for name, path in files.items()
        ]

    return InitListDocument(scenarios=describe(find_scenarios()), rigs=describe(find_bundled(rigs_folder())))


def copy_bundled(name: str, destination: Path | None, *, rig: bool = False) -> Path:
    """Copy a bundled file, and return the path of the copy. Raises `InputError` if `destination` exists."""
    rigs = find_bundled(rigs_folder())
    files = rigs if rig else find_scenarios()
    if name not in files:
        what = "rig" if rig else "scenario or rig"
        known = list(dict.fromkeys(files if rig else [*files, *rigs]))
        raise InputError(f'no bundled {what} "{name}".{suggestion(name, known)} See rigctl init --list.')
    target = destination if destination is not None else Path()
    try:
        if target.is_dir():
            target = target / (f"{name}-rig.yaml" if rig else f"{name}.yaml")
        with target.open("xb") as file:
            file.write(modeline("rig" if rig else "scenario").encode() + files[name].read_bytes())
    except FileExistsError:
        option = "--rig " if rig else ""
        raise InputError(f"{target} exists. Name another file, as in: init {option}{name} DEST.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{target}: cannot be written: {error}") from error
    return target
