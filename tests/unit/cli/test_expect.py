import pytest
from in_process import Rigctl


def test_the_published_table_comes_out(rigctl: Rigctl) -> None:
    printed = rigctl("expect", "--rate", "650M,750M,350M", "--payload", "1,1472u,1460")
    assert printed.errors == ""
    rows = [line.split() for line in printed.out.splitlines() if line.strip()[:1].isdigit()]
    assert rows[:3] == [
        ["1", "TCP", "64", "10.2", "11.7", "5.5"],
        ["1472", "UDP", "1518", "630", "727", "339"],
        ["1460", "TCP", "1518", "625", "721", "337"],
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rate", "1Q"], '--rate: rate "1Q": unknown unit "Q". Use k, M or G (bit/s), as in 1G'),
        (["--rate", "0"], "--rate 0: expected more than 0"),
        (["--rate", "1G,,2G"], "--rate 1G,,2G: expected 1 to 12 values with commas between them"),
        (["--payload", "1461"], "--payload 1461: TCP carries 1460 bytes at most in an MTU of 1500"),
        (["--payload", "1473u"], "--payload 1473u: UDP carries 1472 bytes at most in an MTU of 1500"),
        (["--payload", "x"], "--payload x: expected bytes per packet, as 1460, with a u for UDP, as 1472u, or full"),
        (["--mtu", "67"], "--mtu 67: expected 68 to 65535"),
        (["--window", "64K"], "--window and --rtt go together"),
        (["--window", "64K", "--rtt", "1h,x"], '--rtt: duration "x": expected a number with a unit'),
    ],
)
def test_a_mistake_names_its_option(rigctl: Rigctl, options: list[str], said: str) -> None:
    printed = rigctl("expect", *options, code=2)
    assert printed.out == ""
    assert printed.errors.startswith(f"rigctl: {said}")
