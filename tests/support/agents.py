"""Where the agent's sources are, and what the fixture `start` gives."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from talk import Talk

AGENTS: Final = Path(__file__).parents[2] / "agents"
Start = Callable[..., Talk]
