"""Lines of the agent protocol as in docs/reference/agent-protocol.md, for tests of the parsers."""

import json
from typing import Any

from rigctl.protocol.lines import AgentLine, parse_line
from rigctl.records.flat import GRANTED

TOTALS: dict[str, Any] = dict.fromkeys(GRANTED) | json.loads(
    '{"id":8,"flow":0,"bytes":735000000,"first_byte_ns":1,"last_byte_ns":2,"sndbuf":131072,"rcvbuf":131072,"buffers_doubled":true,"mss":1448,'
    '"rcv_mss":1448,"advmss":1448,"pmtu":1500,"rtt_us":310,"rtt_min_us":60,"retransmits":0,"retransmitted_bytes":0,'
    '"cwnd":45,"busy_us":5000000,"rwnd_limited_us":0,"sndbuf_limited_us":0,"advertised_window":65536,"segs_out":510000,"segs_in":12000,"acked_bytes":735000000,"unacked":0,"timeouts":0,"delivered":507600,"delivered_ce":null,"received_ce":null,"timestamps":true,'
    '"congestion":"cubic","nodelay":false,"round_trips":null,"rtt_sum_ns":null,"rtt_min_ns":null,"rtt_max_ns":null,"disk_us":null,"sync_us":null,'
    '"sends":1402,"uncopied_sends":null,"numa_node":null,"card_numa_node":null,"copied":null}'
)
HELLO = {
    "event": "hello",
    "protocol": 6,
    "agent": "0.1.0",
    "machine": "x86_64",
    "pid": 4711,
    "cpus": 4,
    "clock_ns": 123,
    "restored": 0,
    "unrestored": None,
}
LAST = {
    "endpoint": 1,
    "strangers": 0,
    "span_us": 5001000,
    "agent_cpu_us": 8,
    "node_busy_us": 12,
    "node_irq_us": 5,
    "throttled_us": 0,
    "busiest_cpu_us": 7,
    "cpus": 4,
    "queue_drops": 1,
    "carrier_changes": 1,
    "rx_pause": 17,
    "tx_pause": 0,
    "fcs_errors": 2,
    "alignment_errors": 0,
    "late_collisions": 0,
    "symbol_errors": None,
    "fec_corrected": None,
    "fec_uncorrectable": None,
    "syn_retransmits": 2,
    "listen_overflows": 0,
    "listen_drops": 0,
    "cookies_sent": 0,
    "conntrack_failures": None,
    "conntrack_clashes": None,
} | {f"{way}_{what}": 1 for way in ("rx", "tx") for what in ("bytes", "packets", "dropped", "errors")}
COUNTS = {"frames": 3, "lost": None, "bytes": 5, "cut": False}


def parsed(**value: Any) -> AgentLine:
    return parse_line("pi1", json.dumps({"id": 8, **value}).encode() + b"\n")
