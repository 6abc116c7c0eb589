"""Ping-pong over TCP by each tool: p50 and p99 of the whole round trip, one message at a time.

sockperf prints half a round trip; its messages have 14 to 65,507 bytes.
But for those that are named so, both ends of every tool sleep in the kernel while they wait.
"""

import re
import signal
from collections.abc import Callable

from peers_lab import Figures, Job, Tool
from talk import report_of, started

from rigctl.model.latency import percentile_ns

DEFAULTS = (1, 65536)


def agent(*, busy: bool) -> Callable[[Job], Figures]:
    def run(job: Job) -> Figures:
        with job.agents(extra=f"test=pingpong size={job.number} busy={int(busy)} nodelay=1") as (receiver, sender):
            started(receiver, sender, job.seconds * 1000)
            assert sender.event("ended", job.seconds + 15)["error"] is None
            report = report_of(sender)
        p50, p99 = (percentile_ns([(b, n) for b, n in report.buckets[0]], percent) for percent in (50, 99))
        assert p50 is not None and p99 is not None
        return {"p50_us": p50 / 1e3, "p99_us": p99 / 1e3}

    return run


def sockperf(extra: str = "") -> Callable[[Job], Figures]:
    def run(job: Job) -> Figures:
        port, server = job.serve(f"server --tcp -i {{address}} -p {{port}} {extra}")
        size = min(max(job.number, 14), 65507)
        said = job.drive(f"ping-pong --tcp -i {{address}} -p {port} {extra} -m {size} -t {{seconds}}")
        job.receivers.finished(server, signal.SIGTERM)
        halves = {percent: float(us) for percent, us in re.findall(r"percentile ([\d.]+) = +([\d.]+)", said)}
        return {"p50_us": 2 * halves["50.000"], "p99_us": 2 * halves["99.000"]}

    return run


def neper(job: Job) -> Figures:
    words = f"-P {job.port()} -l {{seconds}} -p 50,99 --no-delay -Q {{number}} -R {{number}}"
    words += f" -B {max(job.number, 65536)}"
    port, server = job.serve(f"-C {{port}} {words}")
    text = job.drive(f"-C {port} {words} -c -H {{address}}")
    job.receivers.finished(server)
    said = dict(line.partition("=")[::2] for line in text.splitlines())
    return {f"{name}_us": 1e6 * float(said[f"latency_{name}"]) for name in ("p50", "p99")}


SLEEP, POLL = "sleeps while it waits", "polls while it waits"
TOOLS = (
    Tool("rigctl", "", agent(busy=False), SLEEP, own=True),
    Tool("rigctl, busy polling", "", agent(busy=True), POLL, own=True),
    Tool("sockperf", "sockperf", sockperf(), SLEEP),
    Tool("neper", "tcp_rr", neper, SLEEP),
    Tool("sockperf --nonblocked", "sockperf", sockperf("--nonblocked"), POLL),
)
