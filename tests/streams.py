"""Random event streams for the laws: valid ones, valid ones with hostile ids, and broken ones.

Everything is a function of the `random.Random` that is passed in. Knows the rules of the client's verifier (its
streams pass it); does not know what a stream means.

`structured` looks like what producers send: several runs, streams open side by side, snapshots in the middle of
them. `adversarial` takes every id, whatever its kind, from one tiny pool, names things that do not exist and sends
events in odd but legal orders. `mutated` damages a stream.
"""

from __future__ import annotations

import random

from ag_ui.core import Event

from tests.author import Author


def structured(rng: random.Random, *, chunks: bool = False) -> list[Event]:
    """A valid stream as a well-meaning producer would send it; with `chunks` also the `*_CHUNK` shorthand."""
    return Author(rng, hostile=False, chunks=chunks).write()


def adversarial(rng: random.Random, *, chunks: bool = False) -> list[Event]:
    """A stream the client's verifier accepts, with ids that collide across kinds, orphans and odd orders."""
    return Author(rng, hostile=True, chunks=chunks).write()


def sequential(rng: random.Random) -> list[Event]:
    """As `structured`, but one thing after the other and everything closed: what the simplest producers send."""
    return Author(rng, hostile=False, chunks=False, sequential=True).write()


def mutated(rng: random.Random, events: list[Event]) -> list[Event]:
    """The stream with one to four accidents: events dropped, doubled, swapped, or given another's tag or id."""
    out = list(events)
    for _ in range(rng.randint(1, 4)):
        if not out:
            break
        at = rng.randrange(len(out))
        match rng.randrange(5):
            case 0:
                del out[at]
            case 1:
                out.insert(rng.randrange(len(out) + 1), out[at])
            case 2:
                other = rng.randrange(len(out))
                out[at], out[other] = out[other], out[at]
            case 3:
                if "subagent_run_id" in type(out[at]).model_fields:
                    tag = rng.choice(("s1", "s2", "zz"))
                    out[at] = out[at].model_copy(update={"subagent_run_id": tag})
            case _:
                for name in ("message_id", "tool_call_id", "step_name"):
                    if name in type(out[at]).model_fields:
                        other_id = rng.choice(("m1", "c1", "a", "zz"))
                        out[at] = out[at].model_copy(update={name: other_id})
                        break
    return out
