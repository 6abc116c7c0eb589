"""Build and list the agent's binaries."""

from typing import Annotated

import typer
from pydantic import BeforeValidator

from rigctl.cli.options import Json
from rigctl.cli.output import Model, Versioned, at, say
from rigctl.remote.build import TARGETS, build_binaries, find_agents, has_cross_compiler, host_machine

agent_commands = typer.Typer(no_args_is_help=True, add_completion=False)


class AgentBinary(Model):
    """An agent binary that comes with rigctl."""

    machine: str
    bytes: int = at("size_bytes")
    sha256: str
    file: Annotated[str, BeforeValidator(str)] = at("path")


class AgentsDocument(Versioned):
    """The agent binaries that come with rigctl."""

    agents: list[AgentBinary]


@agent_commands.command("build")
def build_agents(
    target: Annotated[
        list[str] | None,
        typer.Option("--target", metavar="T", help="Build for this machine type; repeatable (default: all)."),
    ] = None,
    anew: Annotated[bool, typer.Option("--anew", help="Rebuild binaries even if they are up to date.")] = False,
) -> None:
    """Build the agent for each machine type, in a checkout of rigctl."""
    # Without the cross compiler, only the agent for this machine type can be built.
    possible = list(TARGETS) if has_cross_compiler() else [host_machine()]
    for binary in build_binaries(target or possible, anew=anew):
        print(f"{binary.machine:<8} {binary.size_bytes:>7} bytes  {binary.sha256[:16]}  {binary.path}")


@agent_commands.command("list")
def list_agents(as_json: Json = False) -> None:
    """List the agents that come with rigctl: machine, size, SHA-256."""
    binaries = find_agents()
    if as_json:
        print(AgentsDocument.text_of(agents=binaries))
        return
    for binary in binaries:
        say(f"{binary.machine:<15} {binary.size_bytes:>7} bytes  {binary.sha256}")
    if not binaries:
        print("no agents. Build them: rigctl agent build")
