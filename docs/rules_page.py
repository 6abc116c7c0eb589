"""docs/reference/limit-rules.md, made from the rules themselves: `python docs/rules_page.py` prints it."""

from typing import Final

from rigctl.limits.rules import RULES

_HEAD: Final = """# Rules of the limit

Generated from `rigctl/limits/rules.py` by `make pages`; do not edit this page.

The first rule that holds names the limit; what becomes of a rule whose evidence is not known, and what the numbers
mean, is in [limits](../explanation/limits.md#order). Thresholds and their reasons stand in that file.

| | limit | rule | evidence it needs |
|--:|:--|:--|:--|
"""


def page() -> str:
    """Return the whole page."""
    rows = [
        f"| {number} | `{rule.limit}` | {rule.name} | {', '.join(f'`{name}`' for name in rule.needs)} |"
        for number, rule in enumerate(RULES, 1)
    ]
    return _HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(page(), end="")
