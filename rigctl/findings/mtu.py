"""Sentences on packet sizes: the MTUs of interfaces, routes and paths, and the MSS of TCP."""

from functools import partial
from typing import Final

from rigctl.findings import Weight, error, good, note, warning

_SMALLER: Final = "TCP uses the smaller MTU; larger datagrams are lost."
SAME_MTU: Final = good("mtu", "MTU {mtu}.")
MTU_OFF: Final = warning("mtu-off", "{interface} has MTU {mtu}, the rig file {wanted_mtu}.", "{command}")
MTUS_DIFFER: Final = warning(
    "mtus-differ",
    f"the MTUs of the data interfaces differ, {{values}}. {_SMALLER}",
    "Give the interfaces the same MTU.",
)
MTU_UNLIKE: Final = warning("mtu-unlike", f"{{interface}} has MTU {{mtu}}, {{others}}. {_SMALLER}", "{command}")
ROUTE_MTU: Final = warning(
    "route-mtu", "the route to {peer} has MTU {route_mtu}, its interface has {mtu}.", "{command}; or change the route."
)
_PACKETS: Final = (
    "IP packets of {path_mtu_bytes} bytes (ICMP payload {icmp_payload_bytes}, Ethernet frame {ethernet_frame_bytes}) "
    "arrive"
)
PACKETS_ARRIVE: Final = good("packets-arrive", f"{_PACKETS}.")
PACKETS_REFUSED: Final = error(
    "packets-refused",
    "packets above {path_mtu_bytes} bytes are refused by the sender's own firewall (EPERM).",
    "On {source}, {rights}: {firewall}",
)
_ALLOWED: Final = "the interfaces allow {wanted_bytes}"
PATH_MTU: Final = warning(
    "path-mtu",
    f"path MTU {{path_mtu_bytes}}: {_PACKETS}, larger packets are answered by {{router}} (ICMP, MTU {{told_mtu}}); "
    f"{_ALLOWED}.",
    "Raise the MTU of the path to {wanted_bytes}, or lower the MTU of the nodes to {path_mtu_bytes}.",
)
PATH_MTU_UNTOLD: Final = warning(
    "path-mtu-untold",
    f"path MTU {{path_mtu_bytes}}: {_PACKETS}, larger packets do not; {_ALLOWED}. "
    "{system} does not report to the sender whether an ICMP message answers them.",
    PATH_MTU.remedy,
)
BLACK_HOLE: Final = error(
    "black-hole",
    f"black hole: {_PACKETS}, larger packets vanish without an ICMP answer; {_ALLOWED}. TCP stalls on such a path.",
    "Raise the MTU of the switch's ports to {wanted_bytes}, let ICMP {message} pass, or lower the MTU of the nodes: "
    "{commands}",
)
MTU_SMALL: Final = warning(
    "mtu-small",
    "The paths of {nodes} have an MTU of {mtu}, other paths {others_mtu}{ceiling}.",
    "Give {nodes} and the path to them an MTU of {others_mtu}.",
    Weight.BOTTLENECK,
)
_OVER_WIRE: Final = "{request}; {mss} went over the wire"
_END: Final = ".{smallest}"
_of_mss: Final = partial(note, weight=Weight.GRANTED)
MSS_UNEXPLAINED: Final = _of_mss("mss", f"{_OVER_WIRE}{_END}")
MSS_AS_ASKED: Final = _of_mss("mss-as-asked", f"{{request}} and went over the wire{_END}")
MSS_TIMESTAMPS: Final = _of_mss(
    "mss-timestamps", f"{_OVER_WIRE}, because TCP timestamps take {{options}} bytes of every segment{_END}"
)
MSS_MTU: Final = _of_mss("mss-mtu", f"{_OVER_WIRE}, because the MTU is {{mtu}}{_END}")
MSS_FULL: Final = _of_mss("mss-full", f"{_OVER_WIRE}: the MTU of {{mtu}} less {{taken}}{_END}")
_LESS: Final = f"{_OVER_WIRE}; the MTU of {{mtu}} would carry {{full}},"
MSS_HALF_WINDOW: Final = _of_mss("mss-half-window", f"{_LESS} but no segment takes more than half of a window{_END}")
MSS_LOWERED: Final = _of_mss("mss-lowered", f"{_LESS} so something on the path lowered it{_END}")
MSS_OF_PAIRS: Final = _of_mss(
    "mss-of-pairs", "{request}; the pairs differ: {parts} went over the wire. Compare the MTUs of their nodes."
)
MSS_ALIKE: Final = warning(
    "mss-alike",
    "MSS {mss_effective} went over the wire in every test: the MSS requested made no difference.",
    weight=Weight.GRANTED,
)
MSS_UNUSED: Final = warning(
    "mss-unused", "MSS {asked} never went over the wire: the MTU is {mtu}. {used}", weight=Weight.GRANTED
)
