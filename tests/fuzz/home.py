"""The home loop: mutations that know a target's words, and the lines of runcast that an input reaches.

Slower than a fuzzer whose counters are compiled in, and there wherever Python is. It also chooses what is kept.
"""

from __future__ import annotations

import random
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from types import FrameType
from typing import Any

import runcast
from tests.fuzz.corpora import LONGEST, MOST, Check, Target

Arc = tuple[Any, int, int]  # of one function, from a line to a line
HOUSES = tuple(runcast.__path__)  # where the code under test was imported from, wherever the tests lie


class Mutator:
    """Makes inputs from inputs; the same ones from the same seed."""

    def __init__(self, tokens: tuple[bytes, ...], seed: int) -> None:
        self._tokens = tokens
        self._rng = random.Random(seed)

    def made(self, inputs: list[bytes]) -> bytes:
        """One more input."""
        data = bytearray(self._rng.choice(inputs) if inputs else b"")
        for _ in range(self._rng.choice((1, 1, 2, 3, 5, 8))):
            self._change(data, inputs)
        return bytes(data[: 2 * LONGEST])

    def _change(self, data: bytearray, inputs: list[bytes]) -> None:
        rng = self._rng
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice((0, 0, 1, 2, 4, 16, 64)))
        match rng.randrange(7):
            case 0:
                data[start:end] = rng.choice(self._tokens)
            case 1:
                data[start:start] = rng.choice(self._tokens)
            case 2:
                del data[start:end]
            case 3:
                data[start:end] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 4)))
            case 4:
                data[start:start] = data[start:end] * rng.choice((1, 2, 50))
            case 5:
                other = rng.choice(inputs) if inputs else b""
                at = rng.randrange(len(other) + 1)
                data[start:end] = other[at : at + rng.choice((8, 64, 512))]
            case _:
                data[:1] = bytes([rng.randrange(256)])


def reached(check: Check, data: bytes) -> set[Arc]:
    """The steps from line to line in runcast that this input causes."""
    arcs: set[Arc] = set()
    before = sys.gettrace()
    sys.settrace(_tracer(arcs))
    try:
        check(data)
    finally:
        sys.settrace(before)
    return arcs


def _tracer(arcs: set[Arc]) -> Callable[[FrameType, str, Any], Any]:
    last: dict[int, int] = {}

    def line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            arcs.add((frame.f_code, last.get(id(frame), 0), frame.f_lineno))
            last[id(frame)] = frame.f_lineno
        elif event == "return":
            last.pop(id(frame), None)
        return line

    def call(frame: FrameType, event: str, _: Any) -> Any:
        return line if frame.f_code.co_filename.startswith(HOUSES) else None

    return call


def fewest(check: Check, inputs: Iterable[bytes]) -> tuple[list[bytes], int]:
    """The inputs of which each reaches something that no smaller one does, within bounds; and how much they reach."""
    kept: list[bytes] = []
    seen: set[Arc] = set()
    size = 0
    for data in sorted(set(inputs), key=lambda it: (len(it), it)):
        if len(data) > LONGEST:
            break
        try:
            arcs = reached(check, data)
        except Exception:  # what breaks something is kept elsewhere
            continue
        if arcs - seen and size + len(data) <= MOST:
            kept.append(data)
            size += len(data)
            seen |= arcs
    return kept, len(seen)


class Breakage:
    """What broke, once for every place where it did, each with its shortest input."""

    def __init__(self) -> None:
        self.inputs: dict[str, bytes] = {}
        self.traces: dict[str, str] = {}

    def note(self, error: Exception, data: bytes) -> bool:
        """Remember it; True when this place is new."""
        frames = traceback.extract_tb(error.__traceback__)
        # A wrong answer is told apart by what it says, an exception by where it came from.
        place = f"{type(error).__name__} at {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}"
        new = place not in self.inputs
        if new or len(data) < len(self.inputs[place]):
            self.inputs[place] = data
            self.traces[place] = "".join(traceback.format_exception(error, limit=-6))
        return new


def explore(
    target: Target, seconds: float, *, seed: int, most: int | None = None
) -> tuple[int, list[bytes], Breakage]:
    """Mutate for so long, or so often; answers how many inputs were tried, those that reached something new, and what broke."""
    mutator, broken = Mutator(target.tokens, seed), Breakage()
    inputs, seen = target.first(), set[Arc]()
    ends = monotonic() + seconds
    for count, data in enumerate(_first_then_made(inputs, mutator), 1):
        try:
            arcs = reached(target.check, data)
        except Exception as error:
            broken.note(error, data)
        else:
            if arcs - seen:
                seen |= arcs
                inputs.append(data)
        if count == most or monotonic() > ends:
            return count, inputs, broken
    raise AssertionError("mutations do not end")


def _first_then_made(inputs: list[bytes], mutator: Mutator) -> Iterator[bytes]:
    yield from list(inputs)
    while True:
        yield mutator.made(inputs)
