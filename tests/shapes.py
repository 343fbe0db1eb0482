"""Random wire-shaped values: texts, JSON, metadata, messages, patches. Functions of the `random.Random` given."""

from __future__ import annotations

import random
from typing import Any

PIECES = ("a", "b ", "Hello ", "wörld", "", "\u0000", "👩‍👩‍👧", "e\u0301", "\ud83d", "\ude00", "\n", '"', "0")
ARGS = ("{", '"q": ', '"x"', "}", "", "1", "é")
VALUES: tuple[Any, ...] = (
    None,
    0,
    1,
    -5,
    2.5,
    True,
    False,
    "",
    "s",
    [],
    [1, None],
    {},
    {"k": None},
    {"k": [1, {}]},
)
KEYS = ("a", "b", "items", "k")
TAGS = (None, None, None, "s1", "s2", "")
TEXT_ROLES = ("assistant", "assistant", "user", "system", "developer", None)
ROLES = ("assistant", "assistant", "user", "system", "developer", "tool", "reasoning", "activity")


def messages(rng: random.Random, count: int | None = None, ids: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Wire-shaped messages with ids of their own, as a client or a snapshot may hold them."""
    pool = list(ids) or [f"h{n}" for n in range(6)]
    rng.shuffle(pool)
    wanted = rng.randint(0, 4) if count is None else count
    return [message(rng, each, rng.choice(ROLES)) for each in pool[:wanted]]


def message(rng: random.Random, key: str, role: str, tag: str | None = None) -> dict[str, Any]:
    """One wire-shaped message of this role."""
    it: dict[str, Any] = {"id": key, "role": role, "content": text(rng)}
    if role == "assistant":
        if rng.random() < 0.3:
            del it["content"]
        if rng.random() < 0.5:
            it["toolCalls"] = [call(rng, f"{key}-c{n}") for n in range(rng.randint(0, 2))]
    elif role == "tool":
        it["toolCallId"] = rng.choice(("c1", "c2", f"{key}-c0"))
    elif role == "activity":
        it |= {"activityType": rng.choice(("PLAN", "SEARCH")), "content": {"a": rng.choice(VALUES)}}
    elif role == "user" and rng.random() < 0.2:
        it["content"] = [{"type": "text", "text": text(rng)}]
    if role in ("assistant", "user", "system", "developer") and rng.random() < 0.2:
        it["name"] = "Ada"
    if role != "activity" and rng.random() < 0.1:
        it["encryptedValue"] = "enc"
    if tag is not None:
        it["subagentRunId"] = tag
    if rng.random() < 0.2:
        it["metadata"] = metadata(rng)
    return it


def patch(rng: random.Random) -> list[dict[str, Any]]:
    """A JSON Patch that mostly applies; now and then its second operation does not."""
    key = rng.choice(KEYS)
    value = rng.choice(VALUES)
    return rng.choice(
        (
            [{"op": "add", "path": f"/{key}", "value": value}],
            [{"op": "add", "path": f"/{key}", "value": value}],
            [{"op": "add", "path": "/count", "value": rng.randint(0, 9)}],
            [{"op": "replace", "path": f"/{key}", "value": value}],
            [{"op": "remove", "path": f"/{key}"}],
            [{"op": "replace", "path": "", "value": {"a": value}}],
            [{"op": "add", "path": "/items", "value": []}, {"op": "add", "path": "/items/-", "value": value}],
            [{"op": "add", "path": "/b", "value": 1}, {"op": "remove", "path": "/absent"}],
            [{"op": "copy", "from": "/a", "path": "/b"}, {"op": "move", "from": "/b", "path": "/k"}],
            [{"op": "test", "path": "/a", "value": value}, {"op": "add", "path": "/seen", "value": True}],
            [],
        )
    )


def text(rng: random.Random) -> str:
    return "".join(rng.choice(PIECES[:8]) for _ in range(rng.randint(0, 3)))


def call(rng: random.Random, key: str) -> dict[str, Any]:
    it: dict[str, Any] = {
        "id": key,
        "type": "function",
        "function": {"name": "f", "arguments": rng.choice(("", "{}"))},
    }
    if rng.random() < 0.1:
        it["encryptedValue"] = "enc"
    return it


def metadata(rng: random.Random) -> dict[str, Any]:
    return {rng.choice(KEYS): rng.choice(VALUES) for _ in range(rng.randint(0, 2))}
