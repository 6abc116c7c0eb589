"""Two unlike shop pages into which a fragment is pasted: one resets everything, in the dark, one is like Bootstrap."""

# ruff: noqa: E501 — style sheets

from typing import Final

ROOM: Final = "<!-- the fragment -->"

_CONTENT: Final = f"""
<header><h1>Shop</h1><nav><a href="#">Home</a> <a href="#">Cart</a></nav></header>
<main id="content"><h2>A product</h2><p class="claim">Buy it. <strong>Now.</strong></p>
<div class="room" style="width: 700px">{ROOM}</div>
<table class="table"><thead><tr><th>Size</th><td>Price</td></tr></thead><tbody><tr><th>S</th><td class="measured">9</td></tr></tbody></table>
<figure><img alt="" width="10" height="10"><figcaption>It</figcaption></figure>
<details open><summary>More</summary><dl><div><dt>a</dt><dd>b</dd></div></dl></details>
<p class="source">Made <span class="good">here</span>.</p><ul><li>one</li></ul><button>Buy</button></main>
"""

RESETS: Final = f"""<!doctype html><html lang="de" dir="ltr"><head><meta charset="utf-8"><meta name="color-scheme" content="dark"><style>
:root {{ color-scheme: dark; --paper: #000; --ink: lime; --accent: red; --line: magenta; --text: "Comic Sans MS"; }}
html {{ font-size: 62.5%; letter-spacing: .2em; word-spacing: 1em; }}
* {{ margin: 0 !important; padding: 0 !important; border: 0 !important; font: inherit !important; color: #ddd !important;
  background: #101014 !important; text-transform: uppercase !important; line-height: 1 !important; box-sizing: content-box !important; }}
body {{ font-family: serif; text-align: center; visibility: visible; cursor: crosshair; direction: ltr; white-space: pre-line; }}
table {{ display: block !important; table-layout: fixed !important; width: 50px !important; transform: rotate(1deg); }}
#content div, #content table td, #content th {{ display: inline-block !important; float: right !important; opacity: .9 !important; }}
#content div.room {{ display: block !important; float: none !important; opacity: 1 !important; }}
svg, img {{ display: none !important; }} details, summary {{ list-style: none !important; display: flex !important; }}
div > p, strong {{ font-size: 40px !important; text-decoration: underline !important; }}
.claim, .source, .good, .measured, .scroll {{ outline: 3px solid red !important; }}
::selection {{ background: red; }}
</style></head><body>{_CONTENT}</body></html>"""

LIKE_BOOTSTRAP: Final = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><style>
*, *::before, *::after {{ box-sizing: border-box; }}
:root {{ --bs-body-color: #212529; --bs-body-bg: #fff; --s1: #0d6efd; }}
body {{ margin: 0; font-family: system-ui, "Segoe UI", sans-serif; font-size: 1rem; line-height: 1.5; color: var(--bs-body-color);
  background: var(--bs-body-bg); -webkit-text-size-adjust: 100%; }}
h1, h2, h3 {{ margin-top: 0; margin-bottom: .5rem; font-weight: 500; line-height: 1.2; }} h2 {{ font-size: 2rem; }}
p {{ margin-top: 0; margin-bottom: 1rem; }} dl {{ margin-bottom: 1rem; }} dt {{ font-weight: 700; }} dd {{ margin-left: 0; margin-bottom: .5rem; }}
table {{ caption-side: bottom; border-collapse: collapse; }} th {{ text-align: inherit; }}
thead, tbody, tr, td, th {{ border-color: inherit; border-style: solid; border-width: 0; }}
.table {{ width: 100%; margin-bottom: 1rem; vertical-align: top; }} .table > :not(caption) > * > * {{ padding: .5rem; border-bottom-width: 1px; }}
img, svg {{ vertical-align: middle; }} figure {{ margin: 0 0 1rem; }} figcaption {{ font-size: .875em; color: #6c757d; }}
a {{ color: #0d6efd; text-decoration: underline; }} summary {{ display: list-item; cursor: pointer; }}
.claim {{ font-style: italic; }} .source {{ float: left; }} .scroll {{ height: 20px; }}
</style></head><body>{_CONTENT}</body></html>"""

HOSTS: Final = {"resets": RESETS, "like Bootstrap": LIKE_BOOTSTRAP}
