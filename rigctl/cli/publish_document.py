"""What `publish --json` prints, as a model: the JSON Schema follows from it."""

from typing import Literal

from pydantic import Field

from rigctl.cli.json_model import Model


class PublishDocument(Model):
    """What `rigctl publish` wrote."""

    version: Literal[1] = 1
    index: str = Field(description="The front page.")
    answer: str = Field(description="The sentence on top of it.")
    runs: int
    scenarios: int = Field(description="Each on each of its rigs.")
    news: int = Field(description="Entries of news that are known; the feed has the latest hundred.")
    written: list[str] = Field(description="Files that were written, relative to the folder.")
    removed: list[str] = Field(description="Runs that are no longer in the store.")
    damaged: list[str] = Field(description="A message for each run that cannot be read.")
    took_s: float
