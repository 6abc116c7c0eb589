"""The samples in reports/samples, made anew: `make samples`. Each is measured, then printed as page, text and picture.

The run itself lies beside them (NAME.rigctl): `make golden` prints pages and texts again without measuring, and a test
compares them. `make_samples.py NAME…` makes some of them; with --print from what was measured last.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.text import Text

    from rigctl.display.live_run import LiveRun

ROOT: Final = Path(__file__).parents[1]
SAMPLES: Final = ROOT / "reports" / "samples"
STORES: Final = Path(os.environ.get("RIGCTL_SAMPLES", ROOT / ".venv" / "samples"))
RUNS: Final[dict[str, tuple[str, ...]]] = {
    "gigablox-60s": ("gigablox", "--duration", "60s"),
    "gigablox-5s": ("gigablox", "--duration", "5s", "--repeat", "4"),
    "stratus": ("stratus",),
    "stratus-put": ("stratus-put",),
    "udp": ("udp",),
    "qos": ("qos",),
    "head-of-line": ("head-of-line",),
    "incast": ("incast",),
    "interference": ("interference",),
    "stratus-udp": ("stratus-udp",),
    "connections": ("connections",),
    "services": ("services",),
    "multicast": ("multicast",),
    "port-buffer": ("port-buffer",),
    "switch-second": ("switch-second",),
    "nettest-pingpong": ("nettest-pingpong-100k",),
    "nettest-blast": ("nettest-blast",),
    "das2-quick-8g": ("das2-quick",),
    "das2-quick-10g": ("das2-quick", "--rig-set", "trunk.rate=10G"),
    "10gbe-mesh": ("10gbe-mesh",),
    "10gbe-mesh-mended": ("10gbe-mesh-mended",),
    "10gbe-windows": (),  # windows_lab.py measures this one and the next
    "10gbe-windows-open": (),
    "das2-soak": ("das2-soak", "--rig-set", "trunk.rate=10G"),
    "das2": ("das2", "--rig-set", "trunk.rate=10G", "--duration", "1s"),
}
WINDOWS: Final = ("10gbe-windows", "10gbe-windows-open")
LARGE: Final = ("das2-quick-8g", "das2-quick-10g", "das2")
"""Their runs are not kept: 2.5 MB and more."""
LONG: Final = ("nettest-pingpong", "switch-second", "das2-soak", "das2")
"""Made only if they are named: 12, 17, 30 and 80 minutes. `make_samples.py --resume das2` continues a run."""
BRIEF: Final = "gigablox-5s"
"""README shows the lines of this run that a reader posts: they need repetitions."""
CARD: Final = "switch-second"
"""Its product card is made with it."""
PRODUCT: Final[dict[str, tuple[str, ...]]] = {
    "product-gigablox": ("gigablox", "--duration", "8s", "--repeat", "4"),
}
"""What a company would publish: reports/samples/product."""
CHECKS: Final = ("10gbe", "10gbe-mended")
"""Rigs, of which `rigctl check` says what it found."""
SITE: Final = "site"
"""Three weeks of nights as a static site (site_sample.py)."""
PICTURES: Final = (
    "gigablox-60s",
    "das2-quick-8g",
    "10gbe-mesh",
    "nettest-pingpong",
    "stratus",
    "qos",
    "head-of-line",
    "compare",
)
"""Those that README and documentation show."""
COLUMNS: Final = "80"


_DATA: Final = re.compile(
    r'<p class="small inside">.*?<script type="application/json" id="rigctl-data">.*?</script>', re.DOTALL
)


def without_data(page: str) -> str:
    """Return a page without the data inside it, which would change in every sample with each new column."""
    return _DATA.sub("", page, count=1)


def rigctl(name: str, *words: str) -> str:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "COLUMNS": COLUMNS,
        "RIGCTL_STORE": str(STORES / f"{name}.db"),
    }
    command = [sys.executable, "-m", "rigctl", *words]
    done = subprocess.run(command, env=environment, cwd=STORES, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{name}: rigctl {' '.join(words)} gave {done.returncode}")
    return done.stdout


def measured(name: str) -> None:
    """Measure a sample into a store of its own; the two with a Windows host together."""
    if name in WINDOWS:
        from windows_lab import measure_windows_lab

        if name == WINDOWS[0]:
            measure_windows_lab(*(STORES / f"{each}.db" for each in WINDOWS))
        return
    resumed = ("--resume",) if "--resume" in sys.argv else ()
    if not resumed:
        (STORES / f"{name}.db").unlink(missing_ok=True)
    rigctl(name, "run", *(RUNS | PRODUCT)[name], "--no-report", "--quiet", *resumed)


def printed(name: str) -> None:
    """Write the run, its page, what a terminal shows, and of the first run the export."""
    if name not in LARGE:
        rigctl(name, "export", "--format", "rigctl", "-o", str(SAMPLES / f"{name}.rigctl"))
    page = SAMPLES / f"{name}.html"
    rigctl(name, "report", "-o", str(page))
    page.write_text(without_data(page.read_text()))
    (SAMPLES / f"{name}.txt").write_text(rigctl(name, "show"))
    if name == BRIEF:
        (SAMPLES / f"{name}-brief.txt").write_text(rigctl(name, "show", "--brief"))
    if name == CARD:
        rigctl(name, "report", "--fragment", str(SAMPLES / "product" / name))
    if name == "gigablox-60s":
        rigctl(name, "export", "--level", "pairs", "-o", str(SAMPLES / f"{name}-pairs.csv"))


def published() -> None:
    """Write the fragment of a product, a shop's page with it, and the whole report in the theme."""
    folder = SAMPLES / "product"
    with_theme = ("report", "--theme", str(folder / "gigablox.yaml"))
    rigctl("product-gigablox", *with_theme, "-o", str(folder / "report.html"), "--fragment", str(folder / "gigablox"))
    fragment = (folder / "gigablox" / "fragment.html").read_text()
    shop = (ROOT / "reports" / "shop.html").read_text()
    (folder / "shop-gigablox.html").write_text(shop.replace("{fragment}", fragment))


def compared() -> None:
    """Write the comparison of the lab before and after its faults were fixed, from the samples of both."""
    (STORES / "compare.db").unlink(missing_ok=True)
    for name in ("10gbe-mesh", "10gbe-mesh-mended"):
        rigctl("compare", "import", str(SAMPLES / f"{name}.rigctl"))
    page = SAMPLES / "compare.html"
    rigctl("compare", "compare", "latest~1", "latest", "-o", str(page))
    page.write_text(without_data(page.read_text()))


def pictured(pages: Mapping[str, Path]) -> None:
    """Picture the top of some pages, 1280 pixels wide, by the system's Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=options)
        for name, file in pages.items():
            page = browser.new_page(viewport={"width": 1280, "height": 1100})
            page.goto(file.as_uri())
            page.screenshot(path=SAMPLES / f"{name}.png")
            if name == "gigablox-60s":
                page.locator(".answer + .group").first.screenshot(path=SAMPLES / "gigablox-chart.png")
        browser.close()


def screened() -> None:
    """Write the rig's screen in the middle of a run, and after it: as `rigctl display` shows them, 100 × 30."""
    from rigctl.display.layout import draw_screen
    from rigctl.display.live_run import FOLDER_VARIABLE, read_live_runs

    folder = STORES / "published"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ[FOLDER_VARIABLE] = str(folder)
    command = [sys.executable, "-m", "rigctl", "run", "gigablox", "--duration", "12s", "--no-report", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RIGCTL_STORE": str(STORES / "display.db")}
    with subprocess.Popen(command, env=environment, cwd=STORES) as run:
        while run.poll() is None:
            own = [each for each in read_live_runs() if each.state.pid == run.pid]
            test = own[-1].state.test if own else None
            if test is not None and test.number == 5 and test.running and test.gone_s > 9:
                drawn("display", draw_screen(own[-1], 100, 30, time.monotonic()))
            time.sleep(0.5)
    (over,) = [each for each in read_live_runs() if each.state.pid == run.pid]
    drawn("display-results", draw_screen(over, 100, 30, over.state.clock_s))


def recorded() -> None:
    """Write a run of `gigablox` as its terminal shows it, and what is printed after it, as an SVG that moves."""
    from recording import recording
    from rich.text import Text

    from rigctl.display.live_run import FOLDER_VARIABLE, read_live_runs

    folder = STORES / "published"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ[FOLDER_VARIABLE] = str(folder)
    words = ["run", "gigablox", "--duration", "1s"]
    command = [sys.executable, "-m", "rigctl", *words, "--quiet", "--no-report"]
    store = STORES / "recorded.db"
    store.unlink(missing_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RIGCTL_STORE": str(store)}
    prompt = Text(f"$ rigctl {' '.join(words)}", style="bold")
    frames: list[tuple[float, list[Text]]] = [(time.monotonic(), [prompt])]
    with subprocess.Popen(command, env=environment, cwd=STORES, stdout=subprocess.DEVNULL) as run:
        while run.poll() is None:
            own = [each.state for each in read_live_runs() if each.state.pid == run.pid]
            lines = [prompt, *(line for state in own for line in _frame(state))]
            if [line.plain for line in lines] != [line.plain for line in frames[-1][1]]:
                frames.append((time.monotonic(), lines))
            time.sleep(0.25)
    shown = rigctl("recorded", "show")
    frames.append((time.monotonic(), [prompt, *map(Text, shown.splitlines())]))
    (SAMPLES / "run.svg").write_text(recording(frames, int(COLUMNS)))


def _frame(state: "LiveRun") -> "list[Text]":
    from rigctl.display.layout import draw_progress

    return [] if state.phase == "ended" else draw_progress(state, int(COLUMNS), 14)


def drawn(name: str, lines: "Sequence[Text]") -> None:
    from rich.console import Console
    from rich.terminal_theme import MONOKAI

    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=100, file=nowhere, force_terminal=True, highlight=False)
        for line in lines:
            console.print(line, no_wrap=True)
    text = console.export_svg(title="rigctl display", theme=MONOKAI, unique_id=name)
    text = re.sub(r"@font-face \{.*?\}", "", text, flags=re.DOTALL)  # no font is fetched from anywhere
    # Blocks without gaps between them, and the clips of the lines, which would cut them.
    text = re.sub(r' clip-path="url\(#[\w-]+-line-\d+\)"', "", text.replace("font-size: 20px", "font-size: 21px"))
    text = re.sub(r'<clipPath id="[\w-]+-line-\d+">.*?</clipPath>\n?', "", text, flags=re.DOTALL)
    (SAMPLES / f"{name}.svg").write_text(re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE))


def main() -> None:
    words = sys.argv[1:]
    names = [word for word in words if word in RUNS]
    products = [word for word in words if word == "product"]
    checks = [word for word in words if word in CHECKS]
    site, screen, compare = SITE in words, "display" in words, "compare" in words
    if not (names or checks or products or site or screen or compare):
        names, checks, products, site, screen, compare = (
            sorted(RUNS.keys() - LONG),
            list(CHECKS),
            ["product"],
            True,
            True,
            True,
        )
    STORES.mkdir(parents=True, exist_ok=True)
    for name in names:
        if "--print" not in words:
            measured(name)
        printed(name)
        print(name)
    if products:
        for name in PRODUCT if "--print" not in words else ():
            measured(name)
        published()
        print("product")
    for name in checks:
        (SAMPLES / f"{name}-check.txt").write_text(rigctl(name, "check", name))
        print(name)
    if compare:
        compared()
    shown = [name for name in [*names, *(["compare"] if compare else [])] if name in PICTURES]
    pictured({name: SAMPLES / f"{name}.html" for name in shown})
    if screen and "--print" not in words:
        screened()
        recorded()
    if site:
        command = [sys.executable, str(ROOT / "reports" / "site_sample.py")]
        command += ["--print"] if "--print" in words else []
        subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True)


if __name__ == "__main__":
    main()
