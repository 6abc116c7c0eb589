"""`rigctl agent`: the agent's binaries."""

from typing import Annotated

import typer

from rigctl.cli.options import Json

app = typer.Typer(no_args_is_help=True)


@app.command("build")
def build(
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target", metavar="T", help="Build for this machine; may be given several times (default: all)."
        ),
    ] = None,
    anew: Annotated[bool, typer.Option("--anew", help="Build also those that are up to date.")] = False,
) -> None:
    """Build the agent for each machine, in a checkout."""
    from rigctl.remote.build import TARGETS, has_cross_compiler, host_machine
    from rigctl.remote.build import build as build_agents

    # Without the cross compiler the host's own agent is what can be had.
    possible = list(TARGETS) if has_cross_compiler() else [host_machine()]
    for binary in build_agents(target or possible, anew=anew):
        print(f"{binary.machine:<8} {binary.size_bytes:>7} bytes  {binary.sha256[:16]}  {binary.path}")


@app.command("list")
def list_agents(as_json: Json = False) -> None:
    """List the agents that rigctl carries: machine, size, SHA-256."""
    from rigctl.remote.build import carried

    binaries = carried()
    if as_json:
        from rigctl.cli.short_documents import AgentBinary, AgentsDocument

        agents = [
            AgentBinary(machine=one.machine, bytes=one.size_bytes, sha256=one.sha256, file=str(one.path))
            for one in binaries
        ]
        print(AgentsDocument(agents=agents).model_dump_json(indent=2))
        return
    for binary in binaries:
        print(f"{binary.machine:<8} {binary.size_bytes:>7} bytes  {binary.sha256}")
    if not binaries:
        print("none; build them: rigctl agent build")
