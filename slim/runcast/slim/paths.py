"""Places in a JSON document, as JSON Pointers with wildcards.

Knows `/user/ssn`, `/accounts/*/iban` (one step, whatever its name) and `/**/pin` (any number of steps). Does not know
what stands there.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Paths"]

Steps = tuple[str, ...]


class Paths:
    """Where somebody stands in a document, as seen from the places to find: a step gives the next such view."""

    __slots__ = ("_ahead", "here")

    def __init__(self, pointers: Iterable[str] = ()) -> None:
        self._look({_steps(pointer) for pointer in pointers})

    def __bool__(self) -> bool:
        return bool(self._ahead)

    @property
    def none(self) -> Paths:
        """No place at all."""
        return _NONE

    def into(self, step: str) -> Paths:
        """The view from one step further down."""
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
        """The view from the place that the pointer names."""
        view = self
        for step in _steps(pointer):
            view = view.into(step)
        return view

    def _look(self, ahead: set[Steps]) -> None:
        """Take these steps as what lies ahead; `**` also stands for no step at all."""
        for steps in list(ahead):
            while steps and steps[0] == "**":
                steps = steps[1:]
                ahead.add(steps)
        self._ahead = frozenset(ahead)
        self.here = () in self._ahead  # this very place, and all below it


def _steps(pointer: str) -> Steps:
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"path {pointer!r} is no JSON Pointer; it starts with a slash, like '/user/*/token'")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


_NONE = Paths()
