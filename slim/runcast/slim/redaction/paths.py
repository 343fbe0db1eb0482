"""Places in a JSON document, as JSON Pointers with wildcards.

Knows `/user/ssn`, `/accounts/*/iban` (one step of any name) and `/**/pin` (any number of steps). Does not know values.
"""

from __future__ import annotations

from collections.abc import Iterable

Steps = tuple[str, ...]


class Paths:
    """A position in a document, relative to the places to find; `into` returns the position one step further."""

    __slots__ = ("_ahead", "here")

    def __init__(self, pointers: Iterable[str] = ()) -> None:
        self._look({_steps(pointer) for pointer in pointers})

    def __bool__(self) -> bool:
        return bool(self._ahead)

    @property
    def none(self) -> Paths:
        """A position from which no place is reached."""
        return _NONE

    def into(self, step: str) -> Paths:
        """The position one step further down."""
        following: set[Steps] = {()} if self.here else set()
        for steps in self._ahead:
            if steps and steps[0] == "**":
                following.add(steps)
            elif steps and steps[0] in ("*", step):
                following.add(steps[1:])
        view = Paths()
        view._look(following)
        return view

    def below(self, pointer: str) -> Paths:
        """The position that the pointer names, seen from here."""
        view = self
        for step in _steps(pointer):
            view = view.into(step)
        return view

    def _look(self, ahead: set[Steps]) -> None:
        """Set the steps that lead to the places; `**` also stands for no step at all."""
        for steps in list(ahead):
            while steps and steps[0] == "**":
                steps = steps[1:]
                ahead.add(steps)
        self._ahead = frozenset(ahead)
        self.here = () in self._ahead  # this very place, and all below it


def _steps(pointer: str) -> Steps:
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"path {pointer!r} is no JSON Pointer; start it with a slash, like '/user/*/token'")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


_NONE = Paths()
