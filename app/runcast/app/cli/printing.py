"""What the commands print: text and JSON in which nothing that users, agents and models wrote steers the terminal.

Control characters and those that turn the writing direction become `\\u001b`, which in JSON is the same value; line breaks
and tabs stay. All output of the commands goes through here.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from typing import Any

from rich.console import Console
from rich.text import Text

# C0 and C1, DEL, line separators, marks of direction, and halves of surrogate pairs, which no terminal can be sent
_STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
FURTHER = "\n    "  # begins the further lines of a record: none looks like a record of its own


def plain(text: str) -> str:
    """The text without anything that steers a terminal."""
    return _STEERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class Screen(Console):
    """A console for words of others: no markup, no emoji, nothing that steers."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Every text that is printed, a table's cells too."""
        return super().render_str(plain(text), **options)


class PlainLines(logging.StreamHandler[Any]):
    """Writes log records; only the first line of each begins at the margin."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        return plain(super().format(record)).replace("\n", FURTHER)


def say(text: str) -> None:
    """Print a line."""
    print(plain(text), flush=True)


def complain(text: str) -> None:
    """Print a line on standard error."""
    print(f"runcast: {plain(text)}", file=sys.stderr)


def finish(value: Any) -> None:
    """Print one JSON value."""
    say(json.dumps(value, ensure_ascii=False, indent=None if isinstance(value, str) else 2, default=str))


def line(value: bytes) -> None:
    """Print one line of JSON."""
    text = plain(value.rstrip(b"\n").decode("utf-8", "surrogateescape"))
    sys.stdout.buffer.write(text.encode() + b"\n")
    sys.stdout.flush()
