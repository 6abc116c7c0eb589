"""Hosts as a command line names them."""

import re

import pytest

from rigctl.discovery.targets import once_each, targets_of
from rigctl.yamlfile.fields import FieldError


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("pi1", [("pi1", None, None)]),
        ("pi@pi1.lan:2222", [("pi1.lan", "pi", 2222)]),
        ("[fd00::1]:22", [("fd00::1", None, 22)]),
        ("node[08-10]", [("node08", None, None), ("node09", None, None), ("node10", None, None)]),
        ("node[1-2,7].lan", [("node1.lan", None, None), ("node2.lan", None, None), ("node7.lan", None, None)]),
        ("n[0-10/5]", [("n0", None, None), ("n5", None, None), ("n10", None, None)]),
        ("r[1-2]n[1,3]", [("r1n1", None, None), ("r1n3", None, None), ("r2n1", None, None), ("r2n3", None, None)]),
        ("u@10.0.0.[1-2]:23", [("10.0.0.1", "u", 23), ("10.0.0.2", "u", 23)]),
        ("a, b[1,2],[fd00::1]:22", [("a", None, None), ("b1", None, None), ("b2", None, None), ("fd00::1", None, 22)]),
    ],
)
def test_a_text_names_hosts(text: str, hosts: list[tuple[str, str | None, int | None]]) -> None:
    assert [(target.host, target.user, target.port) for target in targets_of([text])] == hosts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("node[1-", "its brackets do not match"),
        ("node[3-1]", "3-1 runs backwards. Write 1-3"),
        ("node[a-c]", "expected numbers in the brackets, as in node[001-003,7]"),
        ("node[01-2]", "01 and 2 have 2 and 1 digits"),
        ("node[1-2000]", "stands for more than 1000 names"),
        ("pi1:", 'port "": expected 1 to 65535'),
        ("pi1:70000", 'port "70000": expected 1 to 65535'),
        ("@pi1", '"" is no user name'),
        ("-oProxyCommand=x", '"-oProxyCommand=x" is no host name'),
        ("[zz::1]", '"zz::1" is no IPv6 address'),
    ],
)
def test_what_names_no_host_is_refused_with_what_to_write(text: str, expected: str) -> None:
    with pytest.raises(FieldError, match=re.escape(expected)):
        targets_of([text])


def test_a_host_that_is_named_again_counts_once() -> None:
    first, again = once_each(targets_of(["pi1", "root@PI1", "pi1:22", "pi1:2222", "pi[1-2]"]))
    assert [target.text for target in first] == ["pi1", "pi1:2222", "pi2"]
    assert [target.text for target in again] == ["root@PI1", "pi1:22", "pi1"]
