"""Measuring again what is noisy: `retest` and `until`, from the scenario's text to the plan."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, WithJsonSchema

from rigctl.records import Retest, Until
from rigctl.scenario.card import Section
from rigctl.settings import MAX_RATE, RATE, Settings
from rigctl.yamlfile import Document, Mistake
from rigctl.yamlfile.fields import FieldError, named, parse_whole, shown

MOST_REPEAT: Final = 1000
_VARIATION: Final = re.compile(r"\s*variation\s*>\s*(\d+(?:\.\d+)?)\s*%\s*")
_CI95: Final = re.compile(r"\s*ci95\s*<\s*(\d+(?:\.\d+)?)\s*%\s*")


def _share(pattern: re.Pattern[str], example: str) -> Callable[[str, object], float]:
    def parse(name: str, value: object) -> float:
        match = pattern.fullmatch(value) if isinstance(value, str) else None
        if match is None or not 0 < float(match[1]) < 100:
            raise FieldError(f'{name} {shown(value)}: expected "{example}", between 0 and 100 %')
        return float(match[1]) / 100

    return parse


def _more(name: str, value: object) -> int:
    return parse_whole(name, value, 2, MOST_REPEAT, 15)


def _text_is_when(value: object) -> object:
    return {"when": value} if isinstance(value, str) else value


def _json(word: str, sign: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^ *{word} *{sign} *[0-9.]+ *% *$"})


_WHOLE: Final = WithJsonSchema({"type": "integer", "minimum": 2, "maximum": MOST_REPEAT})


class RetestSection(Section):
    """Tests whose repetitions differ are measured again."""

    when: Annotated[float, named(_share(_VARIATION, "variation > 5%")), _json("variation", ">")] = Field(
        description="How far they must differ: mean absolute deviation, as a share of the mean.",
        examples=["variation > 5%"],
    )
    repeat: Annotated[int, named(_more), _WHOLE] = Field(15, description="How often they are measured then.")


class UntilSection(Section):
    """Tests are measured until the confidence interval of their mean is small enough."""

    when: Annotated[float, named(_share(_CI95, "ci95 < 1%")), _json("ci95", "<")] = Field(
        description="Half the width of the mean's 95 % confidence interval.", examples=["ci95 < 1%"]
    )
    most: Annotated[int, named(_more), _WHOLE] = Field(50, description="Repetitions of a test at most.")


_UNTIL_SCHEMA: Final = {"anyOf": [{"type": "string", "pattern": "^ *ci95 *<"}, {"type": "object"}]}
_RETEST_SCHEMA: Final = {"anyOf": [{"type": "string", "pattern": "^ *variation *>"}, {"type": "object"}]}
UntilOrText = Annotated[UntilSection | None, BeforeValidator(_text_is_when), WithJsonSchema(_UNTIL_SCHEMA)]
RetestOrText = Annotated[RetestSection | None, BeforeValidator(_text_is_when), WithJsonSchema(_RETEST_SCHEMA)]


def retest_of(section: RetestSection | None) -> Retest | None:
    return None if section is None else Retest(section.when, section.repeat)


def until_of(section: UntilSection | None) -> Until | None:
    return None if section is None else Until(section.when, section.most)


def repeat_of(repeat: int | None, again: Retest | Until | None) -> int:
    """Measurements of each cell at first: as asked for, else two where they decide about more of them, else one."""
    return repeat if repeat is not None else 1 if again is None else 2


def search_mistakes(document: Document, rows: Sequence[Settings]) -> Iterator[Mistake]:
    """Repetitions beside a search for the highest rate in one of `rows`, which repeats in its own way."""
    if not any(row[RATE] == MAX_RATE for row in rows):
        return
    for key in ("retest", "until", "repeat"):
        if str(document.data.get(key)).strip() not in ("None", "1"):
            yield document.mistake((key,), f"{key}: rate: max is searched once, trial by trial.", at_key=True)


def repeating_mistakes(document: Document) -> Iterator[Mistake]:
    """Both at once, and too few repetitions to say how far they differ."""
    given = [key for key in ("retest", "until") if document.data.get(key) is not None]
    if len(given) > 1:
        yield document.mistake(("until",), "until: retest is given too. Choose one of them.", at_key=True)
    # With --repeat 1 nobody asks for it any more.
    once = str(document.data.get("repeat")).strip() == "1" and ("repeat",) not in document.origins
    for key in given:
        if once:
            what = f"{key}: a variation needs two repetitions. Give repeat: 2 or more."
            yield document.mistake((key,), what, at_key=True)
