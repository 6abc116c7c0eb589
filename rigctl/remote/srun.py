"""Transport `srun`: runs each command as a job step on a node of a Slurm allocation, where users have no SSH.

A step shares the node with other steps of the allocation (`--overlap`) and is not bound to a processor. When srun ends,
slurmstepd closes the step's input, at which the command must end. Most `SLURM_*` variables are not passed to srun,
because they describe the layout of the user's own steps.
"""

import asyncio
import os
import re
import shutil
from contextlib import AsyncExitStack
from typing import Final

from rigctl.base.errors import NodeError
from rigctl.base.texts import printable
from rigctl.remote.local import ProcessChannel, spawn
from rigctl.rig.allocation import component_of
from rigctl.rig.inventory import Node

_START_DEADLINE_S: Final = 10.0
"""Deadline for the command's first line. Slurm may wait long for a node that does not answer."""
_OPTIONS: Final = (
    "--overlap", "--nodes=1", "--ntasks=1", "--mem=0", "--cpu-bind=none", "--mpi=none", "--quiet",
    f"--immediate={_START_DEADLINE_S:.0f}",
)  # fmt: skip
# The first line of output, which shows that the node started the command.
_SIGN: Final = b"rigctl: started\n"
_SCRIPT: Final = "echo 'rigctl: started'; cd 2>/dev/null || cd /; exec /bin/sh -c \"$1\""
# Lines of srun that are dropped: a task's exit code, which srun returns too and which would hide the command's last
# error message, and a warning in clusters without CPU binding.
_NOISE: Final = re.compile(rb"srun: (error: [^ ]+: task 0: |cluster configuration lacks support for cpu binding)")
_REASONS: Final = (
    ("Invalid job id", "the allocation (job {job}) has ended"),
    ("already completing or completed", "the allocation (job {job}) has ended"),
    ("Job has been cancelled", "the allocation (job {job}) was cancelled"),
    ("Requested node configuration is not available", "it is not in the allocation (job {job}) any more, or is down"),
    ("not in job", "it is not in the allocation (job {job})"),
    ("Invalid node name", "Slurm knows no such node"),
    ("Unable to contact slurm controller", "slurmctld does not answer"),
    ("Access/permission denied", "the allocation (job {job}) is another user's"),
)
_MOST_QUOTED: Final = 300
_MOST_REST: Final = 4800


async def open_srun(node: Node, stack: AsyncExitStack) -> "SrunConnection":  # noqa: ARG001
    """Return a connection whose commands are job steps. Raise `NodeError` outside an allocation or without srun."""
    job = os.environ.get("SLURM_JOB_ID")
    if not job:
        what = "this is no Slurm allocation (SLURM_JOB_ID is not set). Use sbatch or salloc"
        raise NodeError(node.name, f"transport srun: {what}")
    program = shutil.which("srun")
    if program is None:
        raise NodeError(node.name, "transport srun: srun is not installed here. Install Slurm's client commands")
    return SrunConnection(node, program, job)


class SrunConnection:
    what = "job step"

    def __init__(self, node: Node, program: str, job: str) -> None:
        self._node, self._job = node, job
        component = component_of(node.address)
        of_component = [] if component is None else [f"--het-group={component}"]
        self._words = (program, f"--jobid={job}", *of_component, f"--nodelist={node.address}", *_OPTIONS)
        kept = ("SLURM_CONF", "SLURM_CLUSTER_NAME", "SLURM_JWT")
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if name in kept or not name.startswith(("SLURM_", "SLURMD_", "SRUN_", "SBATCH_", "SALLOC_"))
        }

    async def start(self, command: str) -> "ProcessChannel":
        try:
            process = await spawn(*self._words, "sh", "-c", _SCRIPT, "sh", command, environment=self._environment)
        except OSError as error:
            raise NodeError(self._node.name, f"srun can't be started: {error}") from None
        assert process.stderr is not None
        errors = _Errors(process.stderr)
        channel = ProcessChannel(process, errors)
        try:
            async with asyncio.timeout(_START_DEADLINE_S + 1):
                sign = await channel.stdout.readline()
                if sign == _SIGN:
                    return channel
                complaint = "" if sign else await errors.rest()
            line = printable(sign.decode(errors="replace"))[:_MOST_QUOTED]
            why = f"it did not start rigctl's command, but printed: {line}" if sign else self._reason(complaint)
        except TimeoutError:
            why = f"Slurm started no job step on it within {_START_DEADLINE_S:g} s"
        except BaseException:
            await channel.stop()
            raise
        await channel.stop()
        raise NodeError(self._node.name, why)

    def _reason(self, complaint: str) -> str:
        meaning = next((meaning for sign, meaning in _REASONS if sign in complaint), "srun could not start a job step")
        lines = [line.strip() for line in complaint.splitlines() if line.strip()]
        last = printable(lines[-1])[:_MOST_QUOTED] if lines else "srun said nothing"
        return f"{meaning.format(job=self._job)}: {last}"


class _Errors:
    """A job step's standard error, without srun's usual warnings (`_NOISE`)."""

    def __init__(self, source: asyncio.StreamReader) -> None:
        self._source = source

    async def read(self, most: int) -> bytes:
        while data := await self._source.read(most):
            lines = data.splitlines(keepends=True)
            if kept := b"".join(line for line in lines if not _NOISE.match(line)):
                return kept
        return b""

    async def rest(self) -> str:
        """Read to the end; return the last `_MOST_REST` bytes as text."""
        text = b""
        while data := await self.read(_MOST_REST):
            text = (text + data)[-_MOST_REST:]
        return text.decode("utf-8", "replace")
