"""`rigctl display`: the screen of a rig, from any terminal and any user of this machine."""

import os
import sys
from typing import Annotated

import typer

from rigctl.base.errors import InputError
from rigctl.cli.completion import rig_names
from rigctl.cli.options import Json, StoreAddress


def display(
    rig: Annotated[
        str | None,
        typer.Argument(metavar="RIG", help="Name of the rig, or id of a run.", autocompletion=rig_names),
    ] = None,
    store: StoreAddress = None,
    as_json: Json = False,
    process: Annotated[int | None, typer.Option("--process", hidden=True)] = None,
) -> None:
    """Show the run in progress on RIG, full screen; without one the latest table, until a run begins. q leaves."""
    if as_json:
        from rigctl.cli.display_document import document
        from rigctl.cli.display_screen import of_rig
        from rigctl.display.folder import published

        print(document(of_rig(published(), rig)))
        return
    if not sys.stdout.isatty():
        raise InputError("standard output is no terminal. rigctl display --json prints the state once")
    from rigctl.cli.display_screen import Screen
    from rigctl.display.terminal import watch

    screen = Screen(rig, store, process)
    screen.choose()
    # The stream without `cli.standard_output`: `watch` takes an error of the terminal for its end.
    if not watch(screen.lines, sys.__stdout__ or sys.stdout, interrupts=process is None):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # there is nobody to read what is left to be written
    elif process is not None and screen.going:
        print("The run goes on: rigctl display shows it again, Ctrl-C ends it.", file=sys.stderr)
