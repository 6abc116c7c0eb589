"""Settings of ssh(1) that rigctl honours or replaces. A host with another setting is left to ssh(1).

A setting that asyncssh does not know makes it fail, or connect where ssh(1) would not (`RevokedHostKeys`). So the table
lists what is understood, and every other setting that differs from OpenSSH's default counts as not understood.
"""

import functools
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from rigctl.base.processes import run_bounded

_VERSION_S: Final = 10.0
_HANDED_ON: Final = """
    host hostname port user addressfamily bindaddress hostkeyalias identityfile certificatefile identitiesonly
    identityagent proxyjump userknownhostsfile globalknownhostsfile kexalgorithms ciphers macs hostkeyalgorithms
"""
"""Settings that `ssh_config.route_to` hands on to asyncssh."""
_IN_HOSTNAME: Final = """
    canonicalizehostname canonicaldomains canonicalizefallbacklocal canonicalizemaxdots canonicalizepermittedcnames
"""
"""Settings that `ssh -G` has applied to `hostname`."""
_REPLACED: Final = """
    batchmode stricthostkeychecking nohostauthenticationforlocalhost connecttimeout connectionattempts
    serveraliveinterval serveralivecountmax tcpkeepalive numberofpasswordprompts passwordauthentication
    kbdinteractiveauthentication challengeresponseauthentication requesttty sessiontype stdinnull
    forkafterauthentication escapechar enableescapecommandline remotecommand localcommand permitlocalcommand
    controlmaster controlpath controlpersist
"""
"""Settings for which rigctl has its own value, whatever the configuration says."""
_WITHOUT_EFFECT: Final = """
    addkeystoagent clearallforwardings compression dynamicforward exitonforwardfailure fingerprinthash forwardagent
    forwardx11 forwardx11timeout forwardx11trusted gatewayports gssapiauthentication gssapidelegatecredentials
    gssapikexalgorithms gssapikeyexchange gssapirenewalforcesrekey gssapitrustdns gssapiclientidentity
    gssapiserveridentity hashknownhosts ignoreunknown ipqos localforward loglevel logverbose obscurekeystroketiming
    permitremoteopen remoteforward sendenv setenv streamlocalbindmask streamlocalbindunlink syslogfacility tag tunnel
    tunneldevice updatehostkeys visualhostkey warnweakcrypto xauthlocation
"""
"""Settings that say nothing about who is reached and how: forwardings, messages, conveniences. GSSAPI needs no ticket
as long as a key is accepted; where none is, ssh(1) is asked."""
UNDERSTOOD: Final = frozenset(f"{_HANDED_ON} {_IN_HOSTNAME} {_REPLACED} {_WITHOUT_EFFECT}".split())
"""Names as `ssh -G` prints them, in lower case."""


def not_understood(said: Mapping[str, Sequence[str]], usual: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the names of settings that differ from OpenSSH's defaults `usual` and that only ssh(1) can follow."""
    names = [name for name in said if name not in UNDERSTOOD and list(said[name]) != list(usual.get(name, ()))]
    return tuple(sorted(names))


def openssh_program() -> str | None:
    """Return the path of OpenSSH's ssh(1); None if it is not installed. dropbear's client of that name is another."""
    program = shutil.which("ssh")
    return program if program is not None and _is_openssh(program, Path(program).stat().st_mtime_ns) else None


@functools.lru_cache(maxsize=8)
def _is_openssh(program: str, _stamp: int) -> bool:
    try:
        done = run_bounded([program, "-V"], _VERSION_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return b"OpenSSH_" in done.stdout + done.stderr
