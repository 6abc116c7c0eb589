"""Which settings of ssh(1) leave a host to ssh(1): all that differ from its defaults and are not in the table."""

import pytest

from rigctl.remote.openssh.master import quoted
from rigctl.remote.openssh.options import UNDERSTOOD, not_understood

USUAL = {
    "hostname": ["localhost"],
    "port": ["22"],
    "hashknownhosts": ["no"],
    "gssapiauthentication": ["no"],
    "proxyusefdpass": ["no"],
    "verifyhostkeydns": ["false"],
    "requiredrsasize": ["1024"],
    "casignaturealgorithms": ["ssh-ed25519,rsa-sha2-512"],
    "identityfile": ["~/.ssh/id_rsa", "~/.ssh/id_ed25519"],
}


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"hostname": ["pi1.lan"], "port": ["2222"], "identityfile": ["~/.ssh/lab"]},
        {"hashknownhosts": ["yes"], "sendenv": ["LANG", "LC_*"], "gssapiauthentication": ["yes"]},  # Debian's own
        {"controlmaster": ["auto"], "controlpath": ["/home/anna/.ssh/%C"], "controlpersist": ["600"]},
        {"compression": ["yes"], "serveraliveinterval": ["30"], "forwardagent": ["yes"], "ipqos": ["none"]},
        {"proxyjump": ["admin@gate"], "addressfamily": ["inet"], "bindaddress": ["10.0.0.5"]},
    ],
)
def test_a_host_with_everyday_settings_is_reached_by_rigctls_own_client(said: dict[str, list[str]]) -> None:
    assert not_understood(USUAL | said, USUAL) == ()


@pytest.mark.parametrize(
    "said",
    [
        {"revokedhostkeys": ["/etc/ssh/revoked"]},
        {"knownhostscommand": ["/usr/bin/sss_ssh_knownhosts %H"]},
        {"proxycommand": ["cloudflared access ssh --hostname %h"]},
        {"proxyusefdpass": ["yes"]},
        {"verifyhostkeydns": ["true"]},
        {"pkcs11provider": ["/usr/lib/opensc-pkcs11.so"]},
        {"securitykeyprovider": ["/usr/lib/sk.so"]},
        {"casignaturealgorithms": ["ssh-ed25519"]},
        {"requiredrsasize": ["3072"]},
        {"bindinterface": ["eth1"]},
        {"pubkeyacceptedalgorithms": ["ssh-ed25519"]},
        {"asettingofnextyear": ["yes"]},
    ],
    ids=lambda said: next(iter(said)),
)
def test_a_setting_that_is_not_handed_on_leaves_the_host_to_ssh(said: dict[str, list[str]]) -> None:
    assert not_understood(USUAL | said, USUAL) == tuple(said)


def test_the_default_of_a_setting_that_nobody_knows_counts_as_understood() -> None:
    assert not_understood(USUAL | {"asettingofnextyear": ["no"]}, USUAL | {"asettingofnextyear": ["no"]}) == ()
    assert all(name == name.lower() for name in UNDERSTOOD)


def test_a_path_is_quoted_so_that_ssh_takes_it_as_it_is() -> None:
    assert quoted('/home/a b/100% "key"') == '"/home/a b/100%% \\"key\\""'
