"""Connections: rates against neper, netperf and the same calls; counts against the kernel; times; named facts.

`python tests/bench/bench_connect.py rates|paced|times|facts|calls`, as root. All traffic is between two network
namespaces that this makes: 10.77.0.1 and 10.77.0.2, fd77::1 and fd77::2, on a veth pair; with a round trip, on two TAP
devices joined by a relay (C, below) that delays each frame and notes the time from each SYN to its SYN-ACK. The kernel
needs no netem.

The sources of google/neper and HewlettPackard/netperf are expected in ~/.cache/rigctl/bench/neper and …/netperf and are
built there; nothing is installed. Who closes first: neper's client, by a reset (default) or normally (--time-wait);
netperf's server. `plain` (C, below) makes the same system calls as the agent and nothing else.

Ports: a run lasts about a second and uses a server's port of its own, and the sender has the ports 1024 to 65535, so
that no run meets the connections in TIME-WAIT of another, and none opens more than there are ports.
"""

import itertools
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from bench import ROOT, command, in_turn, spread, table
from processes import eventually, paused
from talk import Report, Talk, begin, listening, report_of, settings
from two_links import Namespace, two_namespaces

from rigctl.model.latency import merge_histograms, percentile_ns

AGENT: Final = os.environ.get("BENCH_AGENT", str(ROOT / "agents" / "build" / "rigctl-agent"))
CACHE: Final = Path.home() / ".cache" / "rigctl" / "bench"
SIDES: Final = {4: ("10.77.0.1", "10.77.0.2"), 6: ("fd77::1", "fd77::2")}
CONTROL_PORT: Final = 601  # of neper; below the ports that connections take
DEADLINE_S: Final = 30
_ports = itertools.count(700)

RELAY: Final = r"""
/* relay NAMESPACE US…: joins a TAP device here and one in another network namespace. Half of each round trip's delay
 * passes each way; with several delays each holds for 100 ms, in turn. At the end of its input it writes the time from
 * each SYN that came here to its SYN-ACK, in ns. */
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#define SLOTS 16384
#define SEEN 4000000
struct way { int in, out, to_server; struct frame { long due; int length; unsigned char bytes[2048]; } *ring;
             volatile unsigned put, taken; } ways[2];
static long delays[64], syn_at[65536], *seen;
static int count;
static volatile int shakes;
static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}
static unsigned char *tcp(unsigned char *b, int length) {
    if (b[12] == 8 && b[13] == 0 && b[23] == 6) return b + 14 + 4 * (b[14] & 15);
    if (b[12] == 0x86 && b[13] == 0xdd && b[20] == 6 && length >= 74) return b + 54;
    return 0;
}
static void note(struct frame *f, int to_server) {
    unsigned char *at = tcp(f->bytes, f->length);
    int port;
    if (at == 0 || (at[13] & 2) == 0) return;
    port = to_server ? at[0] << 8 | at[1] : at[2] << 8 | at[3];
    if (to_server && (at[13] & 16) == 0) syn_at[port] = now();
    else if (!to_server && syn_at[port] != 0 && shakes < SEEN) {
        seen[shakes++] = now() - syn_at[port];
        syn_at[port] = 0;
    }
}
static void *reads(void *argument) {
    struct way *w = argument;
    long last = 0;
    for (;;) {
        struct frame *f = &w->ring[w->put % SLOTS];
        f->length = read(w->in, f->bytes, sizeof f->bytes);
        if (f->length < 60 - 6) { if (f->length < 0) exit(3); }
        long at = now();
        f->due = at + delays[at / 100000000 % count] / 2;
        if (f->due < last) f->due = last;
        last = f->due;
        if (w->to_server) note(f, 1);
        if (w->put - w->taken < SLOTS - 1) __atomic_store_n(&w->put, w->put + 1, __ATOMIC_RELEASE);
    }
}
static void *writes(void *argument) {
    struct way *w = argument;
    prctl(PR_SET_TIMERSLACK, 1UL);
    for (;;) {
        struct frame *f = &w->ring[w->taken % SLOTS];
        struct timespec until;
        if (__atomic_load_n(&w->put, __ATOMIC_ACQUIRE) == w->taken) {
            struct timespec nap = {0, 20000};
            nanosleep(&nap, 0);
            continue;
        }
        until.tv_sec = f->due / 1000000000L, until.tv_nsec = f->due % 1000000000L;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0);
        if (!w->to_server) note(f, 0);
        if (write(w->out, f->bytes, f->length) < 0) continue;
        __atomic_store_n(&w->taken, w->taken + 1, __ATOMIC_RELEASE);
    }
}
static int tap(void) {
    struct ifreq request;
    int fd = open("/dev/net/tun", O_RDWR);
    memset(&request, 0, sizeof request);
    strcpy(request.ifr_name, "eth0");
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    if (fd < 0 || ioctl(fd, TUNSETIFF, &request) != 0) exit(2);
    return fd;
}
int main(int argc, char **argv) {
    int near = tap(), far, i;
    char byte;
    pthread_t thread;
    if (setns(open(argv[1], O_RDONLY), CLONE_NEWNET) != 0) return 2;
    far = tap();
    for (i = 2; i < argc; i++) delays[count++] = 1000 * atol(argv[i]);
    seen = calloc(SEEN, sizeof *seen);
    for (i = 0; i < 2; i++) {
        ways[i] = (struct way){i ? far : near, i ? near : far, !i, calloc(SLOTS, sizeof(struct frame)), 0, 0};
        pthread_create(&thread, 0, reads, &ways[i]);
        pthread_create(&thread, 0, writes, &ways[i]);
    }
    puts("ready");
    fflush(stdout);
    while (read(0, &byte, 1) > 0) {}
    for (i = 0; i < shakes; i++) printf("%ld\n", seen[i]);
    return 0;
}
"""

PLAIN: Final = r"""
/* plain serve|drive ADDRESS PORT BIND FLOWS reset|sender|receiver MS: the agent's system calls, and nothing else. */
#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
static struct sockaddr_storage there, here;
static socklen_t length;
static int closing, listener;
static long until;
static atomic_long made;
static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}
static void fill(struct sockaddr_storage *a, const char *text, int port) {
    struct sockaddr_in *four = (void *)a;
    struct sockaddr_in6 *six = (void *)a;
    if (inet_pton(AF_INET, text, &four->sin_addr) == 1) four->sin_family = AF_INET, length = sizeof *four;
    else inet_pton(AF_INET6, text, &six->sin6_addr), six->sin6_family = AF_INET6, length = sizeof *six;
    four->sin_port = htons(port);
}
static void limits(int fd) {
    struct timeval wait = {.tv_usec = 50000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
}
static void *drives(void *argument) {
    while (now() < until) {
        int fd = socket(there.ss_family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP), on = 1, good;
        struct linger reset = {1, 0};
        struct tcp_info info;
        socklen_t room = sizeof info;
        char byte = 0;
        limits(fd);
        setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
        good = bind(fd, (void *)&here, length) == 0 && connect(fd, (void *)&there, length) == 0 &&
               send(fd, &byte, 1, MSG_NOSIGNAL) == 1 && recv(fd, &byte, 1, 0) == 1 &&
               (closing != 2 || recv(fd, &byte, 1, 0) == 0);
        getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &room);
        if (closing == 0) setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fd);
        made += good;
    }
    return argument;
}
static void *serves(void *argument) {
    for (;;) {
        struct sockaddr_storage peer;
        socklen_t room = sizeof peer;
        char byte = 0;
        int fd = accept4(listener, (void *)&peer, &room, SOCK_CLOEXEC);
        if (fd < 0) continue;
        if (recv(fd, &byte, 1, 0) == 1 && send(fd, &byte, 1, MSG_NOSIGNAL) == 1 && closing != 2) recv(fd, &byte, 1, 0);
        close(fd);
    }
    return argument;
}
int main(int argc, char **argv) {
    int flows = atoi(argv[5]), serve = argv[1][0] == 's', i, on = 1;
    pthread_t threads[256];
    long began = now();
    (void)argc;
    fill(&there, argv[2], atoi(argv[3]));
    fill(&here, argv[4], 0);
    closing = strcmp(argv[6], "reset") == 0 ? 0 : strcmp(argv[6], "sender") == 0 ? 1 : 2;
    until = began + atol(argv[7]) * 1000000;
    if (serve) {
        listener = socket(there.ss_family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        limits(listener);
        if (bind(listener, (void *)&there, length) != 0 || listen(listener, SOMAXCONN) != 0) return 2;
    }
    for (i = 0; i < flows; i++) pthread_create(&threads[i], 0, serve ? serves : drives, 0);
    if (serve) {
        sleep(30);
        return 0;
    }
    for (i = 0; i < flows; i++) pthread_join(threads[i], 0);
    printf("%ld %f\n", (long)made, (now() - began) / 1e9);
    return 0;
}
"""

NETPERF_HAS: Final = (
    "HAVE_{ARPA_INET_H,DAEMON,ENDIAN_H,ERRNO_H,FCNTL_H,FORK,GETADDRINFO,GETNAMEINFO,GETTIMEOFDAY,IFADDRS_H,INET_NTOP,"
    "INTTYPES_H,LIMITS_H,MALLOC_H,NETDB_H,NETINET_IN_H,SCHED_H,SCHED_SETAFFINITY,SELECT,SENDFILE,SETSID,SIGNAL_H,"
    "STDINT_H,STDLIB_H,STRINGS_H,STRING_H,STRUCT_SOCKADDR_STORAGE,SYS_IPC_H,SYS_IOCTL_H,SYS_PARAM_H,SYS_SELECT_H,"
    "SYS_SENDFILE_H,SYS_SOCKET_H,SYS_STAT_H,SYS_TIME_H,SYS_TYPES_H,SYS_WAIT_H,UNISTD_H,UNAME} "
    "H_ERRNO_DECLARED STDC_HEADERS TIME_WITH_SYS_TIME WANT_OMNI WANT_MIGRATION RETSIGTYPE=void "
    "netperf_socklen_t=socklen_t"
)
"""What netperf's configure finds out on Linux: its autotools need not be there. TCP_CRR is then its `omni` test."""
NETPERF_FILES: Final = [
    "netlib",
    "netsh",
    "nettest_bsd",
    "nettest_omni",
    "net_uuid",
    "dscp",
    "netcpu_none",
    "netsys_none",
    "netsec_none",
    "netfirewall_none",
    "netdrv_none",
    "netrt_none",
    "netslot_none",
]


def shell(line: str, cwd: Path) -> None:
    subprocess.run(["bash", "-ec", line], cwd=cwd, check=True, stdout=subprocess.DEVNULL)


@cache
def program(name: str) -> str:
    """Return the path of a program, built if need be."""
    CACHE.mkdir(parents=True, exist_ok=True)
    if name in {"plain", "relay"}:
        text, source = {"plain": PLAIN, "relay": RELAY}[name], CACHE / f"{name}.c"
        if not source.exists() or source.read_text() != text or not (CACHE / name).exists():
            source.write_text(text)
            shell(f"cc -O2 -w -D_GNU_SOURCE -pthread -o {name} {name}.c", CACHE)
        return str(CACHE / name)
    folder = CACHE / {"tcp_crr": "neper"}.get(name, "netperf")
    if not folder.is_dir():
        sys.exit(f"{folder} is missing: unpack the sources of google/neper and HewlettPackard/netperf in {CACHE}")
    if name == "tcp_crr":
        shell("make -s tcp_crr", folder)
        return str(folder / name)
    if not (folder / name).exists():
        (folder / "src" / "netperf_version.h").write_text('#define NETPERF_VERSION "bench"\n')
        sources = " ".join(f"src/{file}.c" for file in [name, *NETPERF_FILES])
        defined = re.sub(
            r"(\w+)\{(.*?)\}", lambda m: " ".join(m[1] + word for word in m[2].split(",")), NETPERF_HAS
        ).split()
        (folder / "src" / "config.h").write_text(
            "".join(f"#define {word.replace('=', ' ') if '=' in word else word + ' 1'}\n" for word in defined)
        )
        flags = "-O2 -w -fcommon -std=gnu89 -D_GNU_SOURCE -DHAVE_CONFIG_H -Isrc"
        shell(f"cc {flags} {sources} -lm -o {name}", folder)
    return str(folder / name)


@dataclass
class Pair:
    """Two namespaces with a link between them."""

    near: Namespace
    far: Namespace
    relay: "subprocess.Popen[str] | None" = None

    def handshakes_ns(self) -> list[int]:
        """End the relay; return the times from each SYN to its SYN-ACK."""
        assert self.relay is not None
        return [int(line) for line in self.relay.communicate("", timeout=DEADLINE_S)[0].split()]


@contextmanager
def laid_out(delays_us: Sequence[int] = (), *, pinned: bool = False) -> Iterator[Pair]:
    """Yield two namespaces, joined by a veth pair or, with `delays_us`, by a relay.

    `pinned`: what runs in the first namespace is on processor 0, and what runs in the second one on processor 1.
    """
    with two_namespaces() as (near, far), ExitStack() as stack:
        pair = Pair(near, far)
        if delays_us:
            words = [*near.enter, program("relay"), f"/proc/{far.name}/ns/net", *map(str, delays_us)]
            pair.relay = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            stack.callback(pair.relay.wait)
            stack.callback(pair.relay.kill)
            assert pair.relay.stdout is not None and pair.relay.stdout.readline() == "ready\n"
        else:
            near.run_lines(f"ip link add eth0 type veth peer name eth0 netns {far.name}")
        for host, end in enumerate((near, far), 1):
            end.run_lines(
                f"ip addr add 10.77.0.{host}/24 dev eth0",
                f"ip addr add fd77::{host}/64 dev eth0 nodad",
                "ip link set eth0 up",
            )
        near.run_lines('sysctl -qw net.ipv4.ip_local_port_range="1024 65535"')
        eventually(lambda: not near.run("ip", "-6", "addr", "show", "tentative").strip())
        near.run("ping", "-c1", "-W2", SIDES[4][1])
        near.run("ping", "-c1", "-W2", SIDES[6][1])
        for processor, end in enumerate((near, far) if pinned else ()):
            end.enter += ["taskset", "-c", str(processor)]
        yield pair


def opened(end: Namespace, name: str) -> int:
    """Return what nstat(8) says of the connections opened in a namespace: TcpActiveOpens or TcpPassiveOpens."""
    return int(end.run("nstat", "-asz", name).split()[-2])


@dataclass(frozen=True)
class Case:
    close: str
    flows: int
    family: int = 4
    rtt_us: int = 0
    seconds: float = 1.0

    def heads(self) -> list[str]:
        return [self.close, str(self.flows), f"IPv{self.family}", f"{self.rtt_us / 1e3:g}" if self.rtt_us else "veth"]


def port_of_its_own() -> int:
    return 20000 + next(_ports) % 10000


@dataclass(frozen=True)
class Ran:
    """A run of the agents, and how many connections the kernel counted at the ends."""

    receiver: Report
    sender: Report
    lines: list[dict[str, object]]  # the lines of `failed` and `late`
    active: int
    passive: int
    ended: list[str]  # the errors with which the agents ended

    @property
    def count(self) -> int:
        return sum(int(total["bytes"]) for total in self.sender.totals.values())

    @property
    def taken(self) -> int:
        return sum(int(total["bytes"]) for total in self.receiver.totals.values())

    @property
    def rate(self) -> float:
        totals = [total for total in self.sender.totals.values() if total["bytes"]]
        span_ns = max(t["last_byte_ns"] for t in totals) - min(t["first_byte_ns"] for t in totals)
        return self.count * 1e9 / float(span_ns)

    @property
    def times(self) -> tuple[tuple[int, int], ...]:
        return merge_histograms([(b, n) for b, n in each] for each in self.sender.buckets.values())

    def failures(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for line in self.lines:
            for name, number in line["failed"]:  # type: ignore[attr-defined]
                found[name] = found.get(name, 0) + number
        return found

    def total(self, key: str) -> int:
        return sum(max(0, int(line[key] or 0)) for line in self.lines)  # type: ignore[call-overload]


Act = Callable[[Pair, Talk, Talk], None]


def agents(
    pair: Pair,
    case: Case,
    how: str = "",
    *,
    first: str = "",
    before: Act | None = None,
    act: Act | None = None,
    wrap: Sequence[str] = (),
) -> Ran:
    """Run two agents for as long as each other, as rigctl does.

    `first` are lines of a shell for the receiver's namespace, run between `listen` and `connect`; `before` is called
    once both are connected, `act` after the start; `wrap` starts the sender.
    """
    here, there = SIDES[case.family]
    counted = [opened(pair.near, "TcpActiveOpens"), opened(pair.far, "TcpPassiveOpens")]
    with Talk([*pair.far.enter, AGENT]) as receiver, Talk([*pair.near.enter, *wrap, AGENT]) as sender:
        given = settings(case.flows, interval_ms=1000, extra=f"test=connect size=1 close={case.close}")
        port = listening(receiver, there, flows=case.flows, interval_ms=1000, extra=given.split(" ", 4)[4])
        if first:
            pair.far.run_lines(first)
        connected = sender.ask(f"connect endpoint=1 address={there} port={port} bind={here} {given}")
        assert connected["ok"], connected
        assert receiver.ask("ready endpoint=1")["ok"]
        if before is not None:
            before(pair, receiver, sender)
        duration_ms = int(case.seconds * 1000)
        begin(sender, duration_ms, how, begin(receiver, duration_ms, how))
        if act is not None:
            act(pair, receiver, sender)
        last = {
            name: talk.event("ended", case.seconds + 20) for name, talk in (("sender", sender), ("receiver", receiver))
        }
        errors = [f"{name} {event['error']}" for name, event in last.items() if event["error"] is not None]
        lines = sender.answer(sender.send("report endpoint=1"))
        reports = (report_of(receiver), Report(lines))
        if wrap:
            sender.end()  # so that it writes what it has to say
    after = [opened(pair.near, "TcpActiveOpens"), opened(pair.far, "TcpPassiveOpens")]
    active, passive = (b - a - case.flows for a, b in zip(counted, after, strict=True))
    return Ran(*reports, [line for line in lines if "failed" in line], active, passive, errors)


def started_there(pair: Pair, words: Sequence[str], listens: int, stack: ExitStack) -> None:
    """Start a server in the far namespace, which ends with `stack`; wait until it listens."""
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([*pair.far.enter, *words], cwd=tempfile.gettempdir(), **quiet)
    stack.callback(server.wait)
    stack.callback(server.kill)
    eventually(lambda: pair.far.run("ss", "-Hlnt", f"sport = :{listens}").strip(), f"{words[0]} listens")


def driven(pair: Pair, words: Sequence[str], stack: ExitStack) -> "subprocess.Popen[str]":
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    client = subprocess.Popen([*pair.near.enter, *words], cwd=CACHE, **options)  # type: ignore[call-overload]
    stack.callback(client.kill)
    found: subprocess.Popen[str] = client
    return found


def neper(pair: Pair, case: Case, wrap: Sequence[str] = ()) -> float:
    """Return connections per second of neper, one thread for each flow on both sides.

    The kernel counts them, without the control connection: `num_transactions` leaves out all since the last
    sample, up to a fifth.
    """
    before = opened(pair.near, "TcpActiveOpens")
    both = f"--nolog -P {port_of_its_own()} -C {CONTROL_PORT} -T {case.flows} -F {case.flows} -l {case.seconds:.0f}"
    both += f" -{case.family}"
    words = [program("tcp_crr"), *both.split(), *(["--time-wait"] if case.close == "sender" else [])]
    with ExitStack() as stack:
        started_there(pair, words, CONTROL_PORT, stack)
        said = driven(pair, [*wrap, *words, "-c", "-H", SIDES[case.family][1]], stack).communicate(timeout=DEADLINE_S)[
            0
        ]
    told = dict(line.partition("=")[::2] for line in said.splitlines())
    made = opened(pair.near, "TcpActiveOpens") - before - 1 - case.flows  # its end leaves one of each flow unfinished
    return made / (float(told["time_end"]) - float(told["time_start"]))


def netperf(pair: Pair, case: Case, wrap: Sequence[str] = ()) -> float:
    """Return connections per second of netperf, a process for each flow on both sides."""
    (here, there), port = SIDES[case.family], port_of_its_own()
    with ExitStack() as stack:
        family = f"-{case.family}"
        started_there(pair, [program("netserver"), "-D", family, "-L", there, "-p", str(port)], port, stack)
        clients = []
        for flow in range(case.flows):
            ports = f"{5000 + 7000 * flow},{11999 + 7000 * flow}"
            words = f"-t TCP_CRR -H {there} -L {here} -p {port} -l {case.seconds:.0f} -P 0 -v 0 {family} --"
            words += f" -p {ports} -o THROUGHPUT"
            clients.append(driven(pair, [*wrap, program("netperf"), *words.split()], stack))
        said = [client.communicate(timeout=DEADLINE_S)[0] for client in clients]
    return sum(float(text.split()[-1]) for text in said)


def plain(pair: Pair, case: Case, wrap: Sequence[str] = ()) -> float:
    (here, there), port = SIDES[case.family], port_of_its_own()
    words = [there, str(port), here, str(case.flows), case.close, f"{case.seconds * 1000:.0f}"]
    with ExitStack() as stack:
        started_there(pair, [program("plain"), "serve", *words], port, stack)
        said = driven(pair, [*wrap, program("plain"), "drive", *words], stack).communicate(timeout=DEADLINE_S)[0]
    count, seconds = said.split()
    return int(count) / float(seconds)


RATES: Final = (
    *(Case(close, flows) for close in ("reset", "sender", "receiver") for flows in (1, 2, 4, 8)),
    *(Case(close, flows, 6) for close in ("reset", "sender", "receiver") for flows in (1, 4)),
    *(Case(close, flows, 4, 10_000) for close in ("reset", "sender", "receiver") for flows in (1, 8)),
    *(Case(close, 4, 6, 10_000) for close in ("reset", "sender", "receiver")),
)


def by_peer(case: Case) -> tuple[str, Callable[[Pair, Case], float]]:
    """Return the tool in which the same side closes first, in the same way."""
    return ("netperf", netperf) if case.close == "receiver" else ("neper", neper)


def rates(rounds: int = 7, first: int = 0, last: int = len(RATES), pinned: bool = False) -> None:
    """Compare rates with neper or netperf, and with the same calls; check each count against the kernel's."""
    heads = ["close", "flows", "IP", "round trip, ms", "rigctl, 1/s", "peer", "peer, 1/s", "rigctl ÷ peer"]
    heads += ["same calls, 1/s", "rigctl ÷ same calls", "same calls ÷ peer", "not as the kernel counts", "load"]
    apart: list[tuple[int, int, int]] = []

    def rows() -> Iterator[list[str]]:
        for case in RATES[first:last]:
            name, peer = by_peer(case)
            with laid_out([case.rtt_us] if case.rtt_us else (), pinned=pinned) as pair:
                runs: list[Ran] = []

                def ours(pair: Pair = pair, case: Case = case, runs: list[Ran] = runs) -> float:
                    runs.append(agents(pair, case))
                    return runs[-1].rate

                ways: dict[str, Callable[[], float]] = {
                    "ours": ours,
                    "peer": partial(peer, pair, case),
                    "plain": partial(plain, pair, case),
                }
                load = os.getloadavg()[0]
                found = in_turn(rounds, ways)
            wrong = 0
            for run in runs:
                each = (run.active - run.count, run.passive - run.count, run.taken - run.count)
                wrong += not all(0 <= one <= case.flows for one in each)
                apart.append(each)
            middle = {key: statistics.median(values) for key, values in found.items()}
            yield [
                *case.heads(),
                spread(found["ours"], 0),
                name,
                spread(found["peer"], 0),
                f"{middle['ours'] / middle['peer']:.3f}",
                spread(found["plain"], 0),
                f"{middle['ours'] / middle['plain']:.3f}",
                f"{middle['plain'] / middle['peer']:.3f}",
                f"{wrong} of {len(runs)}",
                f"{load:.1f}",
            ]

    table("Connections per second", heads, rows())
    for at, name in enumerate(("TcpActiveOpens", "TcpPassiveOpens", "of the receiver")):
        more = [each[at] for each in apart]
        print(f"\n{name} − completed connections: {min(more)} … {max(more)} in {len(more)} runs")


PACED: Final = tuple(
    (per_second, Case(close, flows, family, seconds=2.0))
    for per_second in (50, 200, 1000, 2000, 4000)
    for close, flows, family in (("reset", 1, 4), ("sender", 4, 4), ("receiver", 4, 6), ("reset", 8, 6))
)


def paced(rounds: int = 3) -> None:
    """Compare counts with rate × time, and with the kernel's counters."""
    heads = ["close", "flows", "IP", "per second", "expected", "completed", "TcpActiveOpens", "TcpPassiveOpens"]
    heads += ["late", "failed", "load"]

    def rows() -> Iterator[list[object]]:
        for per_second, case in PACED:
            with laid_out() as pair:
                load = os.getloadavg()[0]
                for run in [agents(pair, case, f"per_second={per_second}") for _ in range(rounds)]:
                    expected = int(per_second * case.seconds)
                    known = [run.count, run.active, run.passive, run.total("late"), sum(run.failures().values())]
                    yield [*case.heads()[:3], per_second, expected, *known, f"{load:.1f}"]

    table("At a fixed rate", heads, rows())


TIMES: Final = (
    ("1", Case("reset", 1, 4), (1000,), "per_second=200"),
    ("2", Case("reset", 4, 4), (2000,), "per_second=200"),
    ("5", Case("sender", 4, 4), (5000,), "per_second=200"),
    ("5", Case("receiver", 4, 6), (5000,), ""),
    ("20", Case("reset", 8, 4), (20000,), ""),
    ("2 … 20, mixed", Case("reset", 4, 4), tuple(range(2000, 22000, 2000)), "per_second=60"),
    ("2 … 20, mixed", Case("receiver", 8, 6), tuple(range(2000, 22000, 2000)), ""),
    (
        "1 … 50, mixed",
        Case("sender", 8, 4),
        (1000, 1000, 1000, 1000, 1000, 10000, 10000, 20000, 50000),
        "per_second=60",
    ),
)
PERCENTS: Final = (50, 90, 99)


def times(seconds: float = 4.0) -> None:
    """Compare the times to connect with those between SYN and SYN-ACK in the relay between both namespaces."""
    heads = ["close", "flows", "IP", "round trip, ms", "start", "connections", "SYN-ACKs"]
    heads += [f"p{percent}: rigctl, relay, ms, ratio" for percent in PERCENTS] + ["load"]

    def rows() -> Iterator[list[object]]:
        for shown, case, delays_us, how in TIMES:
            with laid_out(delays_us) as pair:
                load = os.getloadavg()[0]
                run = agents(pair, Case(case.close, case.flows, case.family, seconds=seconds), how)
                seen = sorted(pair.handshakes_ns()[case.flows :])  # without the openings
            cells = []
            for percent in PERCENTS:
                ours, theirs = percentile_ns(run.times, percent), seen[-(-len(seen) * percent // 100) - 1]
                assert ours is not None
                cells.append(f"{ours / 1e6:.3f}, {theirs / 1e6:.3f}, {ours / theirs:.3f}")
            yield [*case.heads()[:3], shown, how or "one after the other", run.count, len(seen), *cells, f"{load:.1f}"]

    table("Time to connect", heads, rows())


def calls() -> None:
    """Print the system calls of one connection at the sender, of each tool (strace -c)."""

    def run_ours(close: str) -> Callable[[Pair, Sequence[str]], float]:
        return lambda pair, wrap: agents(pair, Case(close, 1), wrap=wrap).rate

    tools: Mapping[str, Callable[[Pair, Sequence[str]], float]] = {
        "rigctl, reset": run_ours("reset"),
        "rigctl, sender": run_ours("sender"),
        "rigctl, receiver": run_ours("receiver"),
        "same calls, reset": lambda pair, wrap: plain(pair, Case("reset", 1), wrap),
        "neper (reset)": lambda pair, wrap: neper(pair, Case("reset", 1), wrap),
        "neper --time-wait (sender)": lambda pair, wrap: neper(pair, Case("sender", 1), wrap),
        "netperf (receiver)": lambda pair, wrap: netperf(pair, Case("receiver", 1), wrap),
    }

    def rows() -> Iterator[list[str]]:
        for name, run in tools.items():
            with laid_out() as pair, tempfile.TemporaryDirectory() as folder:
                out = Path(folder) / "calls"
                run(pair, ["strace", "-f", "-c", "-o", str(out)])
                found = re.findall(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$", out.read_text(), re.M)
            made = next(int(number) for number, call in found if call == "connect")
            each = [(call, int(number) / made) for number, call in found if int(number) / made > 0.3]
            yield [name, ", ".join(f"{call} {number:.1f}" for call, number in each), f"{sum(n for _, n in each):.1f}"]

    table("System calls of a connection, at its sender", ("tool", "calls", "sum"), rows())


@dataclass(frozen=True)
class Fact:
    """A provoked cause, and what is expected of the report, written down before it was run.

    `near` and `far` are lines of a shell for the namespaces of sender and receiver, run once both are connected;
    `first` for that of the receiver between `listen` and `connect`. `expect`: bounds of each figure. `failed`: the
    names of the failures, all of which must come and no other; `may`: those that may come, too.
    """

    name: str
    case: Case
    expect: Mapping[str, tuple[float, float]]
    failed: frozenset[str] = frozenset()
    may: frozenset[str] = frozenset()
    near: str = ""
    far: str = ""
    how: str = ""
    act: Act | None = None
    before: Act | None = None
    first: str = ""
    delays_us: tuple[int, ...] = field(default=())


MANY: Final = float("inf")
SOME: Final = (1, MANY)
NONE: Final = (0, 0)
QUIET: Final = {"retransmits": NONE, "syn_retransmits": NONE, "listen_overflows": NONE, "listen_drops": NONE}


def wall(rule: str, hook: str = "input", kind: str = "filter") -> str:
    table_text = f"table inet wall {{ chain c {{ type {kind} hook {hook} priority 0; {rule}; }}; }}"
    return f"nft '{table_text}'"


def stopped_for(seconds: float) -> Act:
    """Return what stops the receiver for a while, a quarter of a second after the start."""

    def act(_: Pair, receiver: Talk, __: Talk) -> None:
        time.sleep(0.28)
        with paused(receiver.process):
            time.sleep(seconds)

    return act


def descriptors(side: int, spare: int) -> Act:
    """Return what leaves an agent (0 the receiver, 1 the sender) `spare` descriptors."""

    def before(_: Pair, *talks: Talk) -> None:
        pid = talks[side].process.pid
        used = {int(entry.name) for entry in Path(f"/proc/{pid}/fd").iterdir()}
        most = next(number for number in itertools.count() if number not in used) + spare
        subprocess.run(["prlimit", "--pid", str(pid), f"--nofile={most}:{most}"], check=True)

    return before


SYN: Final = "tcp flags & (syn|ack) == syn"
SYN_ACK: Final = "tcp flags & (syn|ack) == (syn|ack)"
DATA: Final = "tcp flags & psh == psh"
FEW_PORTS: Final = 'sysctl -qw net.ipv4.tcp_tw_reuse=0 net.ipv4.ip_local_port_range="40000 40063"'
RESET, SENDER, RECEIVER = (Case(close, 1, seconds=1.5) for close in ("reset", "sender", "receiver"))
LONG: Final = Case("reset", 2, seconds=6.0)
ONE_SECOND: Final = (1000, 1500)
TIMED_OUT: Final = frozenset({"ETIMEDOUT"})
REFUSED: Final = frozenset({"ECONNREFUSED"})
FACTS: Final = (
    Fact("nothing wrong", RESET, {"completed": (500, MANY), "slowest_ms": (0, 200), **QUIET}),
    Fact(
        "nothing wrong, 200 per second",
        RESET,
        {"completed": (300, 300), "late": (0, 30), **QUIET},
        how="per_second=200",
    ),
    Fact(
        "64 ports, closed by the sender",
        SENDER,
        {"completed": (60, 64), "failures": SOME, **QUIET},
        failed=frozenset({"EADDRNOTAVAIL"}),
        near=FEW_PORTS,
    ),
    Fact("64 ports, closed by the receiver", RECEIVER, {"completed": (500, MANY)}, near=FEW_PORTS),
    Fact("64 ports, reset", RESET, {"completed": (500, MANY), **QUIET}, near=FEW_PORTS),
    Fact(
        "64 ports, closed by the sender, tcp_tw_reuse=1",
        Case("sender", 1, seconds=3.5),
        {"completed": (128, 260)},
        failed=frozenset({"EADDRNOTAVAIL"}),
        near=f"{FEW_PORTS}; sysctl -qw net.ipv4.tcp_tw_reuse=1",
    ),
    Fact(
        "64 ports, closed by the sender, IPv6",
        Case("sender", 1, 6, seconds=1.5),
        {"completed": (60, 64)},
        failed=frozenset({"EADDRNOTAVAIL"}),
        near=FEW_PORTS,
    ),
    Fact(
        "10 % of the SYNs lost",
        Case("reset", 8, seconds=5.0),
        {"completed": SOME, "syn_retransmits": SOME, "retransmits": SOME, "slowest_ms": (1000, 5000)},
        far=wall(f"{SYN} numgen random mod 10 == 0 drop"),
    ),
    Fact(
        "10 % of the SYN-ACKs lost",
        Case("reset", 8, seconds=5.0),
        {"completed": SOME, "syn_retransmits": SOME, "retransmits": SOME, "slowest_ms": (1000, 5000)},
        near=wall(f"{SYN_ACK} numgen random mod 10 == 0 drop"),
    ),
    Fact(
        "half of the SYNs lost",
        Case("reset", 16, seconds=7.0),
        {"completed": SOME, "syn_retransmits": SOME, "retransmits": SOME, "slowest_ms": (1000, 5000)},
        may=TIMED_OUT,
        far=wall(f"{SYN} numgen random mod 2 == 0 drop"),
    ),
    Fact(
        "all SYNs dropped at the receiver",
        LONG,
        {"completed": NONE, "connected": NONE, "failures": (2, 2), "syn_retransmits": SOME, "retransmits": SOME},
        failed=TIMED_OUT,
        far=wall(f"{SYN} drop"),
    ),
    Fact(
        "all SYNs dropped by the sender's own firewall",
        LONG,
        {"completed": NONE, "connected": NONE, "failures": (2, 2), "syn_retransmits": SOME},
        failed=TIMED_OUT,
        near=wall(f"{SYN} drop", "output"),
    ),
    Fact(
        "all SYN-ACKs dropped",
        LONG,
        {"completed": NONE, "connected": NONE, "failures": (2, 2), "syn_retransmits": SOME, "retransmits": SOME},
        failed=TIMED_OUT,
        near=wall(f"{SYN_ACK} drop"),
    ),
    Fact(
        "refused by a reset",
        RESET,
        {"completed": NONE, "connected": NONE, "failures": (100, 1600)},
        failed=REFUSED,
        far=wall(f"{SYN} reject with tcp reset"),
    ),
    Fact(
        "refused: ICMP port unreachable",
        RESET,
        {"completed": NONE, "connected": NONE},
        failed=REFUSED,
        far=wall(f"meta nfproto ipv4 {SYN} reject with icmp port-unreachable"),
    ),
    Fact(
        "refused: ICMP admin-prohibited",
        RESET,
        {"completed": NONE, "connected": NONE},
        failed=frozenset({"EHOSTUNREACH"}),
        far=wall(f"meta nfproto ipv4 {SYN} reject with icmp admin-prohibited"),
    ),
    Fact(
        "refused: ICMPv6 admin-prohibited",
        Case("reset", 1, 6, seconds=1.5),
        {"completed": NONE, "connected": NONE},
        failed=frozenset({"EACCES"}),
        far=wall(f"meta nfproto ipv6 {SYN} reject with icmpv6 admin-prohibited"),
    ),
    Fact(
        "the request is reset",
        RESET,
        {"completed": NONE, "connected": SOME},
        failed=frozenset({"ECONNRESET"}),
        far=wall(f"{DATA} reject with tcp reset"),
    ),
    Fact(
        "the answer is dropped",
        LONG,
        {"completed": NONE, "connected": (2, 4), "failures": (2, 2)},
        failed=TIMED_OUT,
        near=wall(f"{DATA} drop"),
    ),
    Fact(
        "the request is dropped",
        LONG,
        {"completed": NONE, "connected": (2, 4), "retransmits": SOME, "failures": (2, 2)},
        failed=TIMED_OUT,
        far=wall(f"{DATA} drop"),
    ),
    Fact(
        "backlog of 1, 64 flows, no cookies",
        Case("reset", 64, seconds=3.0),
        {
            "listen_overflows": SOME,
            "listen_drops": SOME,
            "cookies_sent": NONE,
            "syn_retransmits": SOME,
            "slowest_ms": (1000, 5000),
        },
        may=TIMED_OUT,
        first="sysctl -qw net.core.somaxconn=1 net.ipv4.tcp_syncookies=0",
    ),
    Fact(
        "backlog of 1, 64 flows, cookies",
        Case("reset", 64, seconds=3.0),
        {"listen_overflows": SOME, "listen_drops": SOME, "syn_retransmits": SOME, "slowest_ms": (1000, 5000)},
        may=TIMED_OUT,
        first="sysctl -qw net.core.somaxconn=1 net.ipv4.tcp_syncookies=1",
    ),
    Fact(
        "backlog of 1, 64 flows, 20 ms, no cookies",
        Case("reset", 64, seconds=3.0),
        {"listen_drops": SOME, "cookies_sent": NONE, "syn_retransmits": SOME},
        may=TIMED_OUT,
        first="sysctl -qw net.core.somaxconn=1 net.ipv4.tcp_syncookies=0",
        delays_us=(20000,),
    ),
    Fact(
        "backlog of 1, 64 flows, 20 ms, cookies",
        Case("reset", 64, seconds=3.0),
        {"cookies_sent": SOME},
        may=TIMED_OUT,
        first="sysctl -qw net.core.somaxconn=1 net.ipv4.tcp_syncookies=1",
        delays_us=(20000,),
    ),
    Fact(
        "cookies always (tcp_syncookies=2)",
        RESET,
        {"completed": (500, MANY), "cookies_sent": (500, MANY), "listen_overflows": NONE},
        far="sysctl -qw net.ipv4.tcp_syncookies=2",
    ),
    Fact(
        "receiver stopped for 1 s",
        Case("reset", 1, seconds=3.0),
        {"completed": (300, 300), "late": (50, 110), "slowest_ms": (800, 1100), "syn_retransmits": NONE},
        how="per_second=100",
        act=stopped_for(1.0),
    ),
    Fact(
        "receiver stopped for 6 s",
        Case("reset", 1, seconds=8.0),
        {"completed": SOME, "failures": (1, 1)},
        failed=TIMED_OUT,
        act=stopped_for(6.0),
    ),
    Fact(
        "firewall resets after 20 connections",
        SENDER,
        {"completed": (19, 20), "failures": SOME},
        failed=REFUSED,
        far=wall(f"{SYN} ct state new ct count over 20 reject with tcp reset"),
    ),
    Fact(
        "firewall passes 20 SYNs per second",
        Case("reset", 8, seconds=5.0),
        {"completed": (20, 150), "syn_retransmits": SOME, "slowest_ms": (1000, 5000)},
        may=TIMED_OUT,
        far=wall(f"{SYN} limit rate over 20/second burst 5 packets drop"),
    ),
    Fact(
        "NAT with one port (conntrack refuses)",
        LONG,
        {"completed": SOME, "conntrack_failures": SOME},
        failed=TIMED_OUT,
        near=wall(f"{SYN} snat ip to 10.77.0.1:5000", "postrouting", "nat"),
    ),
    Fact(
        "a million per second wanted",
        RESET,
        {"completed": (500, 1_400_000), "late": (500, MANY), **QUIET},
        how="per_second=1000000",
    ),
    Fact(
        "no descriptor left at the sender",
        RESET,
        {"completed": NONE, "connected": NONE},
        failed=frozenset({"EMFILE"}),
        before=descriptors(1, 0),
    ),
    Fact(
        "no descriptor left at the receiver",
        LONG,
        {"completed": NONE, "connected": (2, 4), "failures": (2, 2)},
        failed=TIMED_OUT,
        before=descriptors(0, 0),
    ),
    Fact(
        "no route (prohibit)",
        RESET,
        {"completed": NONE, "connected": NONE},
        failed=frozenset({"EACCES"}),
        near="ip rule add pref 0 to 10.77.0.2 prohibit; (sleep 1.7; ip rule del pref 0 to 10.77.0.2) >/dev/null 2>&1 &",
    ),
    Fact(
        "firewall resets after 20 SYNs",
        SENDER,
        {"completed": (19, 20), "failures": SOME},
        failed=REFUSED,
        far=wall(f"{SYN} limit rate over 1/hour burst 20 packets reject with tcp reset"),
    ),
    Fact(
        "10 % of the resets at the end lost",
        Case("reset", 1, seconds=6.0),
        {"completed": (500, MANY), "slowest_ms": (0, 200)},
        far=wall("tcp flags & rst == rst numgen random mod 10 == 0 drop"),
    ),
    Fact(
        "one reset in 1000 lost, 4 flows",
        Case("reset", 4, seconds=6.0),
        {"completed": (20000, MANY), "slowest_ms": (0, 200)},
        far=wall("tcp flags & rst == rst numgen random mod 1000 == 0 drop"),
    ),
    Fact(
        "10 % of the ends (FIN) lost",
        Case("sender", 4, seconds=4.0),
        {"completed": (100, MANY), "slowest_ms": (0, 200)},
        far=wall("tcp flags & fin == fin numgen random mod 10 == 0 drop"),
    ),
    Fact(
        "100 connections of each flow",
        Case("reset", 4, seconds=5.0),
        {"completed": (400, 400), **QUIET},
        how="iterations=100",
    ),
    Fact(
        "100 connections of each flow, requests reset",
        Case("reset", 1, seconds=8.0),
        {"completed": NONE, "connected": (100, 100), "failures": (100, 100)},
        failed=frozenset({"ECONNRESET"}),
        far=wall(f"{DATA} reject with tcp reset"),
        how="iterations=100",
    ),
)


def seen_of(fact: Fact) -> dict[str, Any]:
    """Provoke a fact. Return the figures of both reports."""
    with laid_out(fact.delays_us) as pair:

        def before(pair: Pair, receiver: Talk, sender: Talk) -> None:
            for end, lines in ((pair.near, fact.near), (pair.far, fact.far)):
                if lines:
                    end.run_lines(lines)
            if fact.before is not None:
                fact.before(pair, receiver, sender)

        run = agents(pair, fact.case, fact.how, first=fact.first, before=before, act=fact.act)
    slowest = max((total["rtt_max_ns"] or 0 for total in run.sender.totals.values()), default=0)
    found: dict[str, Any] = {
        "completed": run.count,
        "connected": sum(total["round_trips"] for total in run.sender.totals.values()),
        "slowest_ms": round(slowest / 1e6, 1),
        "failed": run.failures(),
        "failures": sum(run.failures().values()),
        **{key: run.total(key) for key in ("late", "retransmits")},
        "syn_retransmits": run.sender.last["syn_retransmits"],
        **{key: run.receiver.last[key] for key in ("listen_overflows", "listen_drops", "cookies_sent")},
        "conntrack_failures": run.sender.last["conntrack_failures"],
        "ended": " and ".join(run.ended),
    }
    return found


def bounds(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"≥ {low:g}" if high == MANY else f"{low:g} … {high:g}"


def facts(only: str = "") -> None:
    """Provoke each cause; print what was expected, what came, and whether that is as expected."""
    heads = ("cause", "expected", "came", "as expected")
    good: list[bool] = []

    def rows() -> Iterator[list[str]]:
        for fact in FACTS:
            if not re.search(only, fact.name):
                continue
            expected = [f"{key} {bounds(*limits)}" for key, limits in fact.expect.items()]
            expected += [f"failed {', '.join(fact.failed | fact.may) or 'none'}" + (" or none" if fact.may else "")]
            try:
                found = seen_of(fact)
            except Exception as error:
                good.append(False)
                yield [
                    fact.name,
                    "; ".join(expected),
                    f"{type(error).__name__}: {error}"[:300].replace("\n", " "),
                    "NO",
                ]
                continue
            names = found["failed"]
            assert isinstance(names, dict)
            held = fact.failed <= names.keys() <= fact.failed | fact.may
            for key, (low, high) in fact.expect.items():
                value = found[key]
                held = held and isinstance(value, int | float) and low <= value <= high
            good.append(held)
            came = [
                f"{key} {value}" for key, value in found.items() if key != "failed" and (value or key in fact.expect)
            ]
            came += [f"failed {', '.join(f'{name} {number}' for name, number in names.items()) or 'none'}"]
            yield [fact.name, "; ".join(expected), "; ".join(came), "yes" if held else "NO"]

    table("Causes and what the agents report", heads, rows())
    print(f"\nas expected: {sum(good)} of {len(good)}")


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("namespaces need root")
    command(__doc__, rates, paced, times, facts, calls)
