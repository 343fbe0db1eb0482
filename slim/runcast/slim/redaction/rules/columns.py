"""Secrets in the columns of a table, and in the items of a list: the name stands in a row above, `user,password`.

Knows CSV and tables of `|`; a name and its value side by side are in `written_logins.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from runcast.slim.redaction.rules.written_forms import is_chosen
from runcast.slim.redaction.secret_pattern import SecretPattern, any_of
from runcast.slim.redaction.secret_values import is_uuid, looks_generated, looks_unlike_a_word

_CHOSEN = ("password", "passwd", "passphrase", "pwd", "pass")
_MADE = ("secret", "token", "api key", "api_key", "apikey", "access_key", "private_key", "secret_key")
_WORDS = any_of((*_CHOSEN, *_MADE))
_BREAK = r"(?:\r?\n|(?:\\+r)?\\+n)"
_CELL = r"(?:\"[^\"\n\\]{0,80}\"|[^\n\\,;\t|\"]{0,80})"
_ROW = rf"(?:[-+|=: ]{{3,120}}|{_CELL}(?:[,;\t|]{_CELL}){{1,12}})"
_NAME = rf"\"?[\w .-]{{0,24}}?(?i:{_WORDS})\"?\s{{0,16}}"
_TITLE = r"\"?[\w .-]{0,24}\"?"
# A header is short: a stream looks back no further.
_HEADER = (
    rf"(?:(?<![^\n\"'])|(?<=\\n))(?=[^\n\\]{{4,56}}{_BREAK})(?=[^\n,;\t|]{{0,40}}[,;\t|])"
    rf"(?:{_TITLE}[,;\t|]){{0,8}}?{_NAME}(?:[,;\t|]{_TITLE}){{0,8}}{_BREAK}"
)
_TITLES = r"[^\n\\()\[\]{}:=<>'/*+!?@#$%&^~`]"  # what titles may consist of, in linear syntax
_ROWS = 20
_break = re.compile(_BREAK)
_cell = re.compile(rf"{_CELL}(?:[,;\t|]|\Z)")
_chosen = re.compile(rf"(?i:{any_of(_CHOSEN)})\Z")
_named = re.compile(rf"(?i:{_WORDS})\Z")


def _cells(row: str, at: int) -> Iterator[tuple[int, str]]:
    """The cells of a row, and where each begins, without the blanks and quotes around it."""
    for match in _cell.finditer(row):
        text = match[0].rstrip(",;\t|")
        inner = text.strip(" \"'`*")
        yield at + match.start() + (text.find(inner) if inner else 0), inner


def _parts(text: str) -> Iterator[tuple[int, int]]:
    """The cells below the names, as long as the rows have as many cells as the header."""
    header, *_ = _break.split(text, maxsplit=1)
    titles = [title for _, title in _cells(header, 0)]
    columns = {at: _chosen.search(title) for at, title in enumerate(titles) if _named.search(title)}
    at = 0
    for row in _break.split(text):
        cells = list(_cells(row, at))
        if at and len(cells) == len(titles):
            for column, chosen in columns.items():
                start, value = cells[column]
                if _is_secret(value, chosen=chosen is not None):
                    yield start, start + len(value)
        behind = _break.match(text, at + len(row))
        at = behind.end() if behind else len(text)


def _is_secret(value: str, *, chosen: bool) -> bool:
    if len(value) < 4 or " " in value or not is_chosen(value):
        return False
    return (
        chosen or looks_generated(value) or is_uuid(value) or (len(value) > 7 and looks_unlike_a_word(value))
    )


COLUMN = SecretPattern(
    "column",
    form=rf"{_HEADER}{_ROW}(?:{_BREAK}{_ROW}){{0,{_ROWS}}}",
    hint=rf"(?i:{_WORDS})\"?\s*(?:[,;\t|]|{_BREAK})",
    besides=rf"(?:^|[\n\"']|\\n){_TITLES}*(?i:{_WORDS})\"?\s*(?:[,;\t|]{_TITLES}*)?{_BREAK}",
    opening=rf"{_HEADER}(?P<secret>(?:{_ROW}{_BREAK}){{0,{_ROWS}}}(?:{_CELL}|\"[^\"\n\\]{{0,80}})(?:[,;\t|](?:{_CELL}|\"[^\"\n\\]{{0,80}})){{0,12}}\\*)\Z",
    onset=rf"(?i:{_WORDS})\"?(?:[\s,;|\\]|$)",
    sign=rf"(?i:{_WORDS})\"?\s*(?:[,;\t|]|{_BREAK})",
    marks=(*_CHOSEN, *_MADE),
    parts=_parts,
)
# `passwords:` and a line for each: a list in YAML.
_ITEM = r"[ \t]{0,24}-[ \t]{1,4}[^\n\\]{1,120}"
_value = re.compile(r"\n[ \t]{0,24}-[ \t]{1,4}[\"']?(?P<value>[^\n\\\"'#]{4,120}+)(?<! )")
ITEMS = SecretPattern(
    "items",
    form=rf"(?i:passwords|passphrases):[ \t]{{0,4}}\n(?P<items>{_ITEM}(?:\n{_ITEM}){{0,{_ROWS}}})",
    hint=r"(?i:passwords|passphrases):",
    opening=rf"(?i:passwords|passphrases):[ \t]{{0,4}}\n(?P<secret>(?:{_ITEM}\n){{0,{_ROWS}}}(?:{_ITEM}|[ \t]{{0,24}}-?[ \t]{{0,4}}))\Z",
    onset=r"(?i:passwords|passphrases)(?::|$)",
    sign=r"(?i:passwords|passphrases):",
    marks=("passwords", "passphrases"),
    parts=lambda text: (
        (match.start("value"), match.end("value"))
        for match in _value.finditer(text)
        if is_chosen(match["value"]) and ":" not in match["value"] and not _is_command(match["value"])
    ),
)


def _is_command(item: str) -> bool:
    return item.count(" ") > (0 if "=" in item else 3)


# `DbPassword:`, and below it `Type: String` and `Default: x`
_OVER = rf"(?i:{any_of((*_CHOSEN, 'secret', 'token', 'api_key', 'apikey'))}):[ \t]{{0,4}}\n"
_FIELDS = r"(?:[ \t]{1,24}[\w-]{1,20}:[^\n]{0,60}\n){0,4}"
_GIVEN = "(?i:default|value)"
NESTED = SecretPattern(
    "nested",
    form=rf"{_OVER}{_FIELDS}?[ \t]{{1,24}}{_GIVEN}:[ \t]{{1,4}}[\"']?(?P<secret>[^\s\"'`<>;|&\\{{}}]{{4,}}+)",
    hint=_OVER,
    opening=rf"{_OVER}{_FIELDS}(?:[ \t]{{1,24}}(?:{_GIVEN}:[ \t]{{1,4}}[\"']?(?P<secret>[^\s\"'`<>;|&\\{{}}]*+)|[\w-]{{0,20}}(?::[^\n]{{0,60}})?))?\Z",
    onset=rf"(?i:{_WORDS})(?::[ \t]*(?:\n|$)|$)",
    check=lambda text: _is_given(*re.split(r":\s*\n", text, maxsplit=1)),
    sign=_OVER,
    marks=(*_CHOSEN, "secret", "token", "api_key", "apikey"),
)


def _is_given(name: str, text: str) -> bool:
    value = re.split(r"[\s\"']", text)[-1]
    return _is_secret(value, chosen=_chosen.search(name) is not None)


COLUMNS = (COLUMN, ITEMS, NESTED)
