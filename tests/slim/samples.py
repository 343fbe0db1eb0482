"""Event JSON for tests: valid by construction, and the same with something wrong.

Walks the shapes, so a new field of the protocol is sampled without an edit here. Whether a sample really is valid is
for the TypeScript schemas to say; nothing here decides it.
"""

from __future__ import annotations

import copy
import random
import string
from typing import Any

from runcast.slim.values.protocol_shapes import (
    EVENT_SHAPES,
    Choice,
    Either,
    Field,
    Flag,
    Kind,
    ListOf,
    Object,
    Record,
    Shape,
    Tagged,
    Text,
    Whole,
    shape_of,
)

Json = dict[str, Any]

TEXTS = ("", "a", "Zoë", "line\nbreak", "\x00", "👩\u200d💻", '"\\/', "\u2028", "NaN", "12345678901234567890")
NUMBERS = (0, -1, 1.5, 2**53 + 1, -(2**53) - 1, 10**30, 1e-7, 1e300, 0.018446744073709551)
POINTERS = ("", "/", "/a", "/a~0b/~1", "/0/é")


def value(rng: random.Random, depth: int = 3) -> Any:
    """Any JSON value."""
    match rng.randrange(8 if depth else 5):
        case 0:
            return None
        case 1:
            return rng.choice((True, False))
        case 2 | 3:
            return rng.choice(TEXTS)
        case 4:
            return rng.choice(NUMBERS)
        case 5:
            return [value(rng, depth - 1) for _ in range(rng.randrange(4))]
        case _:
            return free_object(rng, depth - 1)


def free_object(rng: random.Random, depth: int = 2) -> Json:
    return {
        rng.choice(("a", "b", "ag-ui", "", "é", "type")): value(rng, depth) for _ in range(rng.randrange(4))
    }


def event(rng: random.Random, tag: str | None = None) -> Json:
    """A valid event."""
    return described(rng, EVENT_SHAPES[tag or rng.choice(list(EVENT_SHAPES))])


def described(rng: random.Random, shape: Shape) -> Json:
    wanted = [field for field in shape.fields if not field.omitted or rng.random() < 0.3]
    return {field.wire: of_field(rng, field) for field in wanted}


def of_field(rng: random.Random, field: Field) -> Any:
    made = of_kind(rng, field.kind)
    while made is None and field.optional:  # absent is how 1.0 says nothing
        made = of_kind(rng, field.kind)
    return made


def of_kind(rng: random.Random, kind: Kind) -> Any:
    match kind:
        case Text(pattern):
            return rng.choice(TEXTS if pattern is None else POINTERS)
        case Choice(values):
            return rng.choice(list(values))
        case Whole(low, high):
            return rng.choice((low, high, 0, 1_700_000_000_000))
        case Flag():
            return rng.choice((True, False))
        case Object():
            return free_object(rng)
        case ListOf(item, least):
            return [of_kind(rng, item) for _ in range(rng.randrange(least, least + 3))]
        case Record(model):
            return described(rng, shape_of(model))
        case Tagged(_, records):
            return described(rng, shape_of(rng.choice(list(records.values())).model))
        case Either(parts):
            return rng.choice(TEXTS) if rng.random() < 0.5 else of_kind(rng, parts)
        case _:
            return value(rng)


WRONG = (
    None,
    5,
    1.5,
    -1,
    2**53,
    True,
    "x",
    "/x~2",
    [],
    {},
    [None],
    [{}],
    {"type": "nope"},
    {"type": "success"},
)


def mutated(rng: random.Random, given: Json) -> Json:
    """The same event with one thing changed somewhere: often wrong, sometimes still right."""
    changed = copy.deepcopy(given)
    target = rng.choice([found for found in objects(changed) if found])
    key = rng.choice(list(target))
    match rng.randrange(5):
        case 0:
            del target[key]
        case 1:
            target["".join(rng.choices(string.ascii_letters, k=4))] = value(rng)
        case 2:
            target[key] = None
        case 3:
            target[key] = rng.choice(TEXTS)
        case _:
            target[key] = copy.deepcopy(rng.choice(WRONG))
    return changed


def objects(found: Any) -> list[Json]:
    """Every object in a JSON value, itself included."""
    if isinstance(found, list):
        return [inner for item in found for inner in objects(item)]
    if isinstance(found, dict):
        return [found, *(inner for item in found.values() for inner in objects(item))]
    return []
