"""Ages as texts: `90d`, `12h`, `90m`, `60s`; and how long a thread is kept, for all threads or by a function. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from runcast.app.errors import BadRequest

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
LONGEST = 9  # digits

Keep = str | Callable[[str, str], str | None]
"""An age for every thread, or a function of tenant and thread id that returns one; None keeps the thread for good."""


def age_of(text: str) -> timedelta:
    """The age that a text names."""
    number, unit = text[:-1], text[-1:]
    if unit not in UNITS or not (number.isascii() and number.isdigit() and len(number) <= LONGEST):
        raise BadRequest(f"{text!r} is no age: give a number and a unit, as 30d, 12h, 90m or 60s")
    return timedelta(**{UNITS[unit]: int(number)})


def kept_for(keep: Keep | None, tenant: str, thread_id: str) -> timedelta | None:
    """How long this thread is kept; None is for good."""
    found = keep(tenant, thread_id) if callable(keep) else keep
    return None if found is None else age_of(found)
