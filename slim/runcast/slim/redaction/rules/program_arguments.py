"""Secrets in the arguments of programs that take them without a name: `mysql -u root -pX`, `vault login X`, `echo X | chpasswd`.

Knows programs and their directives; options with a name of their own are in `written_forms.py`.
"""

from __future__ import annotations

import re

from runcast.slim.redaction.rules.written_forms import is_chosen
from runcast.slim.redaction.secret_pattern import SecretPattern, any_of, bounded
from runcast.slim.redaction.secret_values import is_reference, looks_generated, looks_unlike_a_word

_VALUE = r"[^\s\"'`<>;|&\\]"
# Programs that take a password behind one letter: `mysql -u root -pX`, `sshpass -p X`, `htpasswd -b file joe X`.
_PROGRAMS = (
    *("mysql", "mysqldump", "mysqladmin", "mariadb", "sshpass", "redis-cli", "docker login", "podman login"),
    *(
        "helm registry login",
        "az login",
        "unzip",
        "ldapsearch",
        "ldapmodify",
        "htpasswd",
        "sqlcmd",
        "mongosh",
    ),
    *("cqlsh", "mongodump", "mongorestore", "twine upload", "smbclient", "rpcclient", "sqlplus"),
    *(
        "ssh-keygen",
        "snmpget",
        "snmpwalk",
        "zip",
        "7z",
        "security add-generic-password",
        "evil-winrm",
        "crackmapexec",
    ),
    *("netexec", "rdesktop", "xfreerdp", "lftp", "mongo"),
)
_PROGRAM = rf"{bounded(_PROGRAMS)}\s(?=[\w-])"
_LETTER = r"(?:-p\s?|-[aPwNAX]\s|/p:|-u\s[\w.-]{1,64},|-U\s[\w.-]{1,64}%|[\w.-]{1,32}/(?=[^\s@/]{4,64}@)|-[A-Za-z]{0,3}b[A-Za-z]{0,3}\s[^\s]{1,64}\s[^\s]{1,64}\s)[\"']?"
_OPTIONS = r"[^\n|;&]{0,96}?(?<=\s)"


def _given(text: str) -> str:
    return re.split(r"[\s\"'>]+", text)[-1]


_ARGUMENT = rf"{_PROGRAM}{_OPTIONS}{_LETTER}(?P<secret>(?!-){_VALUE}{{4,}}+)"
_argument = re.compile(_ARGUMENT)


def _is_argument(text: str) -> bool:
    """Whether the argument is no reference; behind `mysql -p` and a blank a word is a database."""
    match = _argument.match(text)
    value = match["secret"] if match else ""
    database = text.startswith(("mysql", "maria")) and text[: -len(value)].endswith(" ")
    return is_chosen(value) and (looks_unlike_a_word(value) or not database)


COMMAND = SecretPattern(
    "command",
    form=_ARGUMENT,
    hint=rf"{any_of(_PROGRAMS)}\s",
    opening=rf"{any_of(_PROGRAMS)}\s(?:[\w-][^\n|;&]{{0,128}})?\Z",
    onset=rf"(?:{any_of(_PROGRAMS)}(?:\s|\s?$))",
    check=_is_argument,
    sign=rf"{any_of(_PROGRAMS)}",
    marks=tuple(sorted({f"{program} " for program in _PROGRAMS})),
)
# Directives that a password follows at once, or behind one word, or behind `-p`.
_DIRECT = (
    *(
        "requirepass",
        "masterauth",
        "wpa-psk",
        "vault login",
        "operator unseal",
        "snyk auth",
        "bindpw",
        "rootpw",
        "add-authtoken",
    ),
    *(
        "--secret-string",
        "gotify push -t",
        "gem push --key",
        "SecureString --value",
        "-AsPlainText",
        "bw unlock",
    ),
)
_BEHIND = ("add_user", "change_password", "net user", "wpa_passphrase")
_ADDING = ("useradd", "usermod")
_DIRECTIVES = (*_DIRECT, *_BEHIND, *_ADDING)
_HEAD = rf"(?:{bounded(_DIRECT)}|{bounded(_BEHIND)}\s{{1,4}}[^\s\"'/-][^\s\"']{{0,64}}|{bounded(_ADDING)}\s[^\n|;&]{{0,64}}?-p)"
DIRECTIVE = SecretPattern(
    "directive",
    form=rf"{_HEAD}\s{{1,4}}[\"']?(?P<secret>(?![-/]){_VALUE}{{4,}}+)",
    hint=rf"{any_of(_DIRECTIVES)}\s",
    opening=rf"{any_of(_DIRECTIVES)}(?:\s[^\n]{{0,96}})?\Z",
    onset=rf"{any_of(_DIRECTIVES)}",
    check=lambda text: is_chosen(_given(text)),
    sign=rf"{any_of(_DIRECTIVES)}",
    marks=tuple(f"{each} " for each in _DIRECTIVES),
)
# `echo X | sudo -S …`, `echo "root:X" | chpasswd`
_TAKING = (
    "sudo -S",
    "chpasswd",
    "passwd --stdin",
    "docker login",
    "podman login",
    "kinit",
    "cryptsetup",
    "gh auth",
    "gh secret",
    "wrangler secret",
)
_TAKERS = f"{any_of(_TAKING)}"
PIPED = SecretPattern(
    "piped",
    form=rf"echo\s(?:-n\s)?[\"']?(?:[\w.-]{{1,32}}:)?(?P<secret>{_VALUE}{{4,160}}+)[\"']?\s{{0,2}}\|\s{{0,2}}{_TAKERS}",
    hint=rf"echo\s[^\n|]{{1,240}}\|\s*{_TAKERS}",
    opening=r"echo(?:\s(?:-n\s)?[\"']?(?P<secret>[^\n|]{0,160}(?:\|[\w -]{0,18})?))?\Z",
    onset=r"echo(?:\s|$)",
    check=lambda text: is_chosen(re.split(r"[\s\"':]", text.partition("|")[0].rstrip(" \"'"))[-1]),
    sign="echo",
    marks=tuple(each.lower() for each in _TAKING),
)
# `kinit joe <<< 'x'`
_READERS = rf"(?:{any_of((*_TAKING, '-stdin'))})"
HERE = SecretPattern(
    "here",
    form=rf"{_READERS}[^\n|;&<]{{0,64}}<<<\s{{0,2}}[\"']?(?P<secret>{_VALUE}{{4,}}+)",
    hint="<<<",
    opening=rf"{_READERS}[^\n|;&<]{{0,64}}(?:<{{1,3}}+(?:\s{{0,2}}[\"']?(?P<secret>{_VALUE}*+))?)?\Z",
    onset=rf"{_READERS}|<$",
    check=lambda text: is_chosen(_given(text)),
    sign=_READERS,
    marks=("<<<",),
)
# `net use Z: \\\\host\\share X /user:joe`, `net use Z: \\\\host\\share /user:joe X`
_SHARED = r"net use\s[^\n|;&]{0,96}?(?:\\\\[^\s]{1,80}|/user:[^\s]{1,64})\s{1,4}"
SHARE = SecretPattern(
    "share",
    form=rf"{_SHARED}(?P<secret>(?![/*]){_VALUE}{{4,}}+)",
    hint="net use",
    opening=r"net use(?:\s[^\n|;&]{0,160}+)?\Z",
    onset="net use",
    check=lambda text: is_chosen(_given(text)),
    sign="net use",
    marks=("net use",),
)
# `tool -p X` of any program, where no path, port or name looks like it: letters of both cases and digits.
_MIXED = r"(?=[^\s]{0,63}[A-Z])(?=[^\s]{0,63}[a-z])(?=[^\s]{0,63}[0-9])"
LETTER = SecretPattern(
    "letter",
    form=rf"\s-(?:pw|[pPw])\s{{1,2}}[\"']?{_MIXED}(?P<secret>[^\s\"'`<>;|&\\/:.=,()\[\]{{}}-]{{8,64}}+)(?=[\"'\s]|\Z)",
    hint=r"\s-(?:pw|[pPw])\s",
    opening=rf"\s-(?:pw?|[Pw])?(?:(?<=[pPw])\s{{1,2}}[\"']?(?P<secret>{_VALUE}*+))?\Z",
    onset=r"\s-(?:pw|[pPw])?$|(?:^|\s)-(?:pw|[pPw])\s|^-?(?:pw|[pPw])(?:\s|$)",
    check=lambda text: not is_reference(_given(text)),
    sign=r"\s-",
    marks=("-p ", "-pw ", "-w "),
)
_PASS = re.compile(r"(?i:passw|passphrase|pass\s|pwd\s)")


def _is_made(value: str) -> bool:
    return looks_generated(value) or (len(value) > 7 and looks_unlike_a_word(value))


# `ENV DB_PASSWORD x`, `setenv API_TOKEN x`, `SetEnv SECRET x`
_SETS = ("ENV", "ARG", "setenv", "SetEnv", "set -x", "set -gx", "set -Ux")
_SETTING = rf"{bounded(_SETS)}\s{{1,4}}[A-Za-z0-9_]{{0,40}}?(?i:password|passwd|passphrase|pass|pwd|secret|token|key)"
SETTING = SecretPattern(
    "setting",
    form=rf"{_SETTING}\s{{1,4}}[\"']?(?P<secret>{_VALUE}{{6,}}+)",
    hint=rf"{any_of(_SETS)}\s+[A-Za-z0-9_]*(?i:password|passwd|passphrase|pass|pwd|secret|token|key)\s",
    opening=rf"{_SETTING}\s{{1,4}}[\"']?(?P<secret>{_VALUE}*+)\Z",
    onset=rf"{any_of(_SETS)}(?:\s|$)",
    check=lambda text: is_chosen(_given(text)) and (_PASS.search(text) is not None or _is_made(_given(text))),
    sign=any_of(_SETS),
    marks=("password", "passwd", "passphrase", "pass", "pwd", "secret", "token", "key"),
    delimited=True,
)
COMMANDS = (SETTING, COMMAND, DIRECTIVE, PIPED, HERE, SHARE, LETTER)
