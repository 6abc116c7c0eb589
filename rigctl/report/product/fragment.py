"""The fragment: HTML for a shop's page in a shadow root of its own (docs/decisions/0033-a-root-of-its-own.md)."""

import json
from typing import Final

from rigctl.base.resources import templates
from rigctl.report.printers.html import environment
from rigctl.report.product.claim import Claim, rate_text
from rigctl.report.product.content import Product
from rigctl.report.product.data import linked_data
from rigctl.report.product.pictures import NARROW, WIDE, bars, bars_label, bars_title, keys
from rigctl.report.product.style import host_style

_HYPHENS: Final = {
    word.replace("\u00ad", ""): word
    for word in ("Retrans\u00admits", "Effi\u00adciency", "Paral\u00adlel", "Connec\u00adtions", "Con\u00adgestion")
}
"""Heads of columns with where they may be broken on a phone."""


def fragment(product: Product) -> str:
    """As it is pasted. Every text of the user is escaped."""
    from markupsafe import Markup

    wide, narrow = (bars(product, width, framed=False) for width in (WIDE, NARROW))
    linked = json.dumps(linked_data(product), ensure_ascii=False, indent=1).replace("<", "\\u003c")
    style = host_style(product.theme) + (templates() / "product.css").read_text("utf-8")
    return (
        environment()
        .get_template("product.html.j2")
        .render(
            product=product,
            theme=product.theme,
            hyphens=_HYPHENS,
            claim=product.claim if isinstance(product.claim, Claim) else None,
            table=product.table,
            conditions=product.conditions,
            label=bars_label(product) if wide else "",
            title=bars_title(product) if wide else "",
            rate_text=rate_text,
            keys=keys(product) if wide else [],
            wide=Markup(wide or ""),  # noqa: S704 — drawn here, its texts escaped
            narrow=Markup(narrow or ""),  # noqa: S704
            linked=Markup(linked),  # noqa: S704 — JSON without <
            style=Markup(style),  # noqa: S704 — colours and fonts as their patterns allow
        )
    )
