"""The texts of the demo's agent and its tools, for every framework. Knows no framework."""

from __future__ import annotations

QUESTION = "Write a short brief on the night train from Warsaw to Vienna."
THOUGHT = (
    "The reader wants a brief, so: what runs, what it costs in time, what the weather does to it. I need the "
    "timetable archive and the forecast; the two do not depend on each other, so I can ask for both at once."
)
PLAN = (
    "I'll look at the timetable archive and the forecast side by side, check the connection, have a writer draft "
    "the brief, and ask you before anything is published."
)
CHECK = (
    "Checking the connection in Bohumín: the through cars are shunted there at night, and the stop is short."
)
DRAFT = (
    "The night train leaves Warsaw in the evening and is in Vienna for breakfast. Through cars are shunted at "
    "Bohumín, so nobody has to change. Snow is forecast on the ridge; the timetable has slack for it. "
    "Bring a book, not an alarm clock."
)
PUBLISHED = "Published. The brief is out, with the archive's 34 kB behind it and none of it in your way."
KEPT = "Kept as a draft. Nothing was published."
ASK = "The draft is ready. Publish it?"


def words(text: str) -> list[str]:
    """The text in pieces, as a model streams it."""
    first, *rest = text.split(" ")
    return [first, *(f" {word}" for word in rest)]


def archive() -> str:
    """34 kB of timetable: too much for a browser, and of use to a model."""
    rows = [
        f"{n:04d}  EN 406  Warszawa Wsch. {18 + n % 4:02d}:{n * 7 % 60:02d}  Wien Hbf {6 + n % 3:02d}:{n * 11 % 60:02d}  runs: daily"
        for n in range(470)
    ]
    return "\n".join(rows)


FORECAST = "Snow on the ridge after midnight, -4 degrees, wind from the north-west; clear over Vienna."
