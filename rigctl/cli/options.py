"""Options that several commands share, declared once."""

from typing import Annotated

import typer

RigFile = Annotated[
    str | None,
    typer.Option("--rig", metavar="RIG", help="A rig file, or the name of a bundled rig, instead of the scenario's."),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="AXIS=V1,V2", help="Replace an axis or a field; may be given several times."),
]
RigSets = Annotated[
    list[str] | None,
    typer.Option("--rig-set", metavar="PATH=VALUE", help="Replace a value of the rig file, as trunk.rate=10G."),
]
Duration = Annotated[str | None, typer.Option("--duration", metavar="D", help="Time per cell, as 5s or 30m.")]
Repeat = Annotated[int | None, typer.Option("--repeat", metavar="N", help="Measure every cell N times.")]
StoreAddress = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar="RIGCTL_STORE",
        metavar="URL",
        help="An SQLAlchemy URL or a path (default: rigctl.db in the user's data folder).",
    ),
]
