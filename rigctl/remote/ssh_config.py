"""Finds out how ssh(1) would reach a server: `ssh -G HOST` prints the settings that follow from ~/.ssh/config.

Without ssh(1), asyncssh reads ~/.ssh/config, but refuses some files that ssh(1) accepts. Like ssh(1), rigctl skips a
missing or unreadable key, a missing known_hosts file, and a malformed line in a known_hosts file.
"""

import functools
import hashlib
import os
import pwd
import re
import socket
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final, TypeAlias

import asyncssh
from asyncssh.encryption import get_encryption_algs
from asyncssh.kex import get_kex_algs
from asyncssh.mac import get_mac_algs
from asyncssh.public_key import get_public_key_algs

from rigctl.base.processes import run_bounded
from rigctl.remote.openssh.options import not_understood, openssh_program

CONFIG: Final = "~/.ssh/config"
_ANSWER_S: Final = 10.0
"""Deadline of `ssh -G`, which may run a program for `Match exec`."""
KNOWN_HOSTS: Final = "~/.ssh/known_hosts"
_NONE: Final = "none"
_NO_FILES: Final = (_NONE, "/dev/null")
GONE: Final = "is not there"
_FILES: Final = ("identityfile", "certificatefile", "userknownhostsfile", "identityagent")
"""Settings that `ssh -G` prints with tokens such as %h."""
_TOKEN: Final = re.compile(r"%[%CdhikLlnpru]|\$\{\w+\}")
_DEFAULT_KEYS: Final = ("~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ed25519")
_FAMILIES: Final = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}
_ALGORITHMS: Final = (
    ("kex_algs", "kexalgorithms", get_kex_algs),
    ("encryption_algs", "ciphers", get_encryption_algs),
    ("mac_algs", "macs", get_mac_algs),
    ("server_host_key_algs", "hostkeyalgorithms", get_public_key_algs),
)
"""For each option: its name in asyncssh, its name in ssh(1), and a function that lists asyncssh's algorithms."""
Stamp: TypeAlias = "tuple[int, int] | None"
Answers: TypeAlias = "Mapping[str, Sequence[str]]"


@dataclass(frozen=True, slots=True)
class SshRoute:
    """How a server is reached. `options` are for asyncssh; `skipped` names unusable files and where they are set."""

    options: Mapping[str, Any]
    keys: tuple[asyncssh.SSHKeyPair, ...]
    agent: str | None  # socket of the ssh-agent; None: use no agent
    agent_only: tuple[bytes, ...] | None  # public keys to use from the ssh-agent; None: all its keys
    known_hosts: tuple[str, ...]  # known_hosts files; a new host key belongs into the first
    skipped: tuple[str, ...]
    beyond: tuple[str, ...] = ()  # settings that only ssh(1) can follow


BARE: Final = SshRoute({}, (), None, None, (), ())
"""Uses no configuration of ssh(1) and no key."""


def route_to(address: str, port: int | None, user: str | None) -> SshRoute | None:
    """Return how ssh(1) would reach a server; None if ssh(1) is missing. Raise `ValueError` with ssh(1)'s error."""
    program = openssh_program()
    if program is None:
        return None
    said = answers(program, address, port, user, str(Path.home()), file_stamp(CONFIG))
    usual = answers(program, "localhost", None, None, os.devnull)
    beyond = not_understood(said, usual)
    one = {name: values[0] for name, values in said.items()}
    tokens = _tokens(address, one)

    def filled(text: str) -> str:
        return _TOKEN.sub(lambda token: tokens.get(token[0], token[0]), text)

    said = {name: [filled(value) for value in values] if name in _FILES else values for name, values in said.items()}
    one |= {name: said[name][0] for name in _FILES if name in said}
    skipped: list[str] = []
    keys, public = _keys(said, skipped)
    agent = one.get("identityagent", "SSH_AUTH_SOCK")
    agent = os.environ.get(agent.removeprefix("$"), "") if re.fullmatch(r"\$?SSH_AUTH_SOCK", agent) else agent
    files = [*(known_hosts_of(said) or [KNOWN_HOSTS]), *one.get("globalknownhostsfile", "").split()]
    known_hosts = [file for file in files if file not in _NO_FILES]
    gone = [file for file in known_hosts if not _path(file).exists() and _place(file) is not None]
    skipped += [_text_of_skipped(file, GONE) for file in gone]
    options: dict[str, Any] = {
        "host": one["hostname"],
        "port": int(one["port"]),
        "username": one["user"],
        "host_key_alias": one.get("hostkeyalias"),
        "family": _FAMILIES.get(one.get("addressfamily", ""), 0),
        "local_addr": (one["bindaddress"], 0) if "bindaddress" in one else None,
    }
    if one.get("proxyjump", _NONE) != _NONE:
        options["tunnel"] = one["proxyjump"]
    elif one.get("proxycommand", _NONE) != _NONE:
        options["proxy_command"] = ["sh", "-c", f"exec {filled(one['proxycommand'])}"]
    algorithms, unknown = _algorithms(one, usual)
    return SshRoute(
        options | algorithms,
        tuple(keys),
        str(_path(agent)) if agent and agent != _NONE else None,
        tuple(public) if one.get("identitiesonly") == "yes" else None,
        tuple(known_hosts),
        tuple(skipped),
        (*beyond, *unknown),
    )


def known_hosts_of(said: Answers) -> list[str]:
    """Return the user's files of known hosts. They are empty for `none`, with which ssh(1) would trust every host."""
    return [file for file in said.get("userknownhostsfile", ("",))[0].split() if file not in _NO_FILES]


def route_of_asyncssh(options: asyncssh.SSHClientConnectionOptions, known_hosts: tuple[str, ...]) -> SshRoute:
    """Return how to reach a server if ssh(1) is missing, from what asyncssh itself read in ~/.ssh/config."""
    config: Any = options.config
    said = {
        "identityfile": [str(file) for file in config.get("IdentityFile", ())] or list(_DEFAULT_KEYS),
        "certificatefile": [str(file) for file in config.get("CertificateFile", ())],
    }
    skipped: list[str] = []
    keys, public = _keys(said, skipped)
    agent = str(config.get("IdentityAgent", os.environ.get("SSH_AUTH_SOCK", "")))
    only = tuple(public) if config.get("IdentitiesOnly") else None
    return SshRoute({}, tuple(keys), str(_path(agent)) if agent else None, only, known_hosts, tuple(skipped))


def _tokens(address: str, one: Mapping[str, str]) -> dict[str, str]:
    """Return the value of each token and variable that file names may contain (ssh_config(5), TOKENS)."""
    here, host, port, user = socket.gethostname(), one["hostname"], one["port"], one["user"]
    whole = hashlib.sha1(f"{here}{host}{port}{user}".encode(), usedforsecurity=False).hexdigest()
    return {f"${{{name}}}": value for name, value in os.environ.items()} | {
        **{"%%": "%", "%C": whole, "%d": str(Path.home()), "%h": host, "%i": str(os.getuid())},
        **{"%k": one.get("hostkeyalias", address), "%L": here.partition(".")[0], "%l": here, "%n": address},
        **{"%p": port, "%r": user, "%u": pwd.getpwuid(os.getuid()).pw_name},
    }


def ssh_words(program: str, home: str) -> list[str]:
    """Return how ssh(1) is started so that it reads the configuration in `home`, because it ignores $HOME."""
    if home == pwd.getpwuid(os.getuid()).pw_dir:
        return [program]
    config = Path(home, ".ssh/config")
    return [program, "-F", str(config) if config.exists() else _NONE]


@functools.lru_cache(maxsize=4096)
def answers(program: str, address: str, port: int | None, user: str | None, home: str, _stamp: Stamp = None) -> Answers:
    """Return the settings of a host as `ssh -G` prints them, by lower-case name. Raise `ValueError` if ssh(1) fails."""
    words, account = [*ssh_words(program, home), "-G"], pwd.getpwuid(os.getuid())
    words += ["-p", str(port)] if port is not None else []
    words += ["-l", user] if user is not None else []
    try:
        done = run_bounded([*words, "--", address], _ANSWER_S)
    except subprocess.TimeoutExpired:
        raise ValueError(f"`ssh -G {address}` had not answered after {_ANSWER_S:g} s") from None
    if done.returncode != 0:
        complaint = [line for line in os.fsdecode(done.stderr).splitlines() if line.strip()]
        raise ValueError(f"ssh refuses them: {complaint[0] if complaint else f'exit code {done.returncode}'}")
    said: defaultdict[str, list[str]] = defaultdict(list)
    for line in os.fsdecode(done.stdout).splitlines():
        name, _, value = line.partition(" ")
        said[name.lower()].append(re.sub(rf"(^| ){re.escape(account.pw_dir)}/", r"\1~/", value.strip()))
    return said


def _keys(said: Answers, skipped: list[str]) -> tuple[list[asyncssh.SSHKeyPair], list[bytes]]:
    """Return the usable key pairs, and all public keys. Add a text for each unusable file to `skipped`."""
    pairs: list[asyncssh.SSHKeyPair] = []
    public: list[bytes] = []
    certificates = [file for file in said.get("certificatefile", ()) if file != _NONE]
    skipped += [_text_of_skipped(file, GONE) for file in certificates if not _path(file).exists()]
    usable = tuple(str(_path(file)) for file in certificates if _path(file).exists())
    for file in said.get("identityfile", ()):
        if file == _NONE:
            continue
        found, known, wrong = identity(str(_path(file)), file_stamp(file), usable)
        pairs += found
        public += known
        if wrong is not None and (wrong != GONE or _place(file) is not None):  # else a default file of ssh(1)
            skipped.append(_text_of_skipped(file, wrong))
    return pairs, public


@functools.lru_cache(maxsize=64)
def identity(
    file: str, _stamp: Stamp, certificates: Sequence[str] = ()
) -> tuple[Sequence[asyncssh.SSHKeyPair], Sequence[bytes], str | None]:
    """Return the key pairs of a file, its public keys, and why the file cannot be used (None if it can)."""
    public: list[bytes] = []
    for name in (file, f"{file}.pub"):
        with suppress(OSError, ValueError):  # the file is a private key or does not exist
            public.append(asyncssh.read_public_key(name).public_data)
    if not Path(file).exists():
        return (), public, GONE
    try:
        pairs = asyncssh.load_keypairs([file], certlist=list(certificates), ignore_encrypted=True)
    except (OSError, ValueError, asyncssh.Error) as error:
        return (), public, None if public else f"is not a usable key ({error})"
    return pairs, [*public, *(pair.public_data for pair in pairs)], None


def _algorithms(one: Mapping[str, str], usual: Answers) -> tuple[dict[str, list[str]], list[str]]:
    """Return the algorithms in ~/.ssh/config that asyncssh has, by its option; leave out options at their default.

    Return also the settings none of whose algorithms asyncssh has.
    """
    chosen, unknown = {}, []
    for option, name, known in _ALGORITHMS:
        names = one.get(name, "").split(",")
        if names != usual.get(name, [""])[0].split(","):
            has = {algorithm.decode() for algorithm in known()}
            if usable := [each for each in names if each in has]:
                chosen[option] = usable
            else:
                unknown.append(name)
    return chosen, unknown


def _path(file: str) -> Path:
    return Path(file).expanduser()


def _place(file: str) -> str | None:
    """Return where the configuration names a file; None for one of ssh(1)'s default files."""
    patterns = ((_TOKEN.sub("*", name), at) for name, at in _keys_in_config(file_stamp(CONFIG)).items())
    # Skip words that consist of tokens only, as in `nc %h %p`, because they would match any file.
    number = next((at for name, at in patterns if name.strip("*:") and fnmatch(Path(file).name, name)), None)
    return None if number is None else f"{CONFIG}:{number}"


@functools.lru_cache(maxsize=1)
def _keys_in_config(_stamp: Stamp) -> Mapping[str, int]:
    """Return the number of the first line with each name in ~/.ssh/config. Any word there may be a file name."""
    named: dict[str, int] = {}
    if _stamp is not None:
        for number, line in enumerate(_path(CONFIG).read_text("utf-8", "replace").splitlines(), 1):
            for word in re.split(r"[\s=\"]+", line):
                named.setdefault(Path(word).name, number)
    return named


def _text_of_skipped(file: str, why: str) -> str:
    place = _place(file)
    return f"{place + ': ' if place else ''}{file} {why}"


def read_known_hosts(files: Sequence[str]) -> asyncssh.SSHKnownHosts:
    """Return the known hosts of all existing files; like ssh(1), skip malformed lines."""
    return _read_known_hosts(tuple((file, file_stamp(file)) for file in files))


@functools.lru_cache(maxsize=8)
def _read_known_hosts(files: Sequence[tuple[str, Stamp]]) -> asyncssh.SSHKnownHosts:
    """Return the known hosts of these files. All nodes share the cached result until a file changes."""
    lines: list[str] = []
    for file, _ in files:
        with suppress(OSError):
            lines += _path(file).read_text("utf-8", "replace").splitlines()
    try:
        return asyncssh.import_known_hosts("\n".join(lines))
    except ValueError:
        return asyncssh.import_known_hosts("\n".join(line for line in lines if _readable(line)))


def _readable(line: str) -> bool:
    try:
        asyncssh.import_known_hosts(line)
    except ValueError:
        return False
    return True


def file_stamp(file: str) -> Stamp:
    """Return a file's modification time in ns and size in bytes, which show changes; None if there is no file."""
    with suppress(OSError):
        status = _path(file).stat()
        return status.st_mtime_ns, status.st_size
    return None
