"""Puts a fault into the running process: the functions of its file get the code that the changed text has, or the modules
that know a constant of it get another one.

It refuses where the fault is anything else, or stands in what ran at import: then a new interpreter imports the changed
text (`python -m tests.mutants.planting file text …`, and the rest is for pytest).
"""

from __future__ import annotations

import gc
import importlib.machinery
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

PATIENCE = 120  # seconds for one test in the new interpreter
_OPTIMIZED = 1  # CO_OPTIMIZED: a function's code has it, a module's or a class's has not


def functions() -> dict[str, list[FunctionType]]:
    """All functions of this process by file. To be called before the collector freezes them."""
    found = defaultdict[str, list[FunctionType]](list)
    for each in gc.get_objects():
        if isinstance(each, FunctionType):
            found[each.__code__.co_filename].append(each)
    return found


def plant(path: Path, text: str, found: list[FunctionType]) -> None:
    """Give the functions the code of the text. `LookupError` where that would not be all of the change."""
    sound, faulty = (
        _named(compile(each, str(path), "exec", dont_inherit=True)) for each in (path.read_text(), text)
    )
    if _imported(sound) != _imported(faulty):
        raise LookupError(path)
    names = {code: name for name, code in sound.items()}
    codes = [faulty.get(names[each.__code__]) for each in found]
    for function, code in zip(found, codes, strict=True):
        if code is None or code.co_freevars != function.__code__.co_freevars:
            raise LookupError(path)
    for function, code in zip(found, codes, strict=True):
        function.__code__ = code  # type: ignore[assignment]  # none is None


def plant_constants(path: Path, text: str, module: ModuleType) -> None:
    """Give every module that has them the constants of the text; `LookupError` where the text has other functions, or
    other things than constants."""
    sound, faulty = (
        list(_codes(compile(each, str(path), "exec", dont_inherit=True))) for each in (path.read_text(), text)
    )
    if [_body(each) for each in sound[1:]] != [_body(each) for each in faulty[1:]]:
        raise LookupError(path)
    fresh: dict[str, Any] = {"__name__": module.__name__}
    exec(faulty[0], fresh)
    known = vars(module)
    changed = [
        (name, known[name], new)
        for name, new in fresh.items()
        if isinstance(new, _CONSTANTS) and name in known and known[name] != new
    ]
    if not changed:
        raise LookupError(path)
    for each in known.values():
        if hasattr(each, "cache_clear"):
            each.cache_clear()
    for space in [getattr(each, "__dict__", {}) for each in list(sys.modules.values())]:
        for name, old, new in changed:
            if space.get(name) is old:
                space[name] = new


def _body(code: CodeType) -> object:
    plain = [each for each in code.co_consts if not isinstance(each, CodeType)]
    return (code.co_qualname, code.co_code, code.co_names, plain)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code and what is inside it, but for comprehensions: they belong to the code around them."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType) and each.co_name not in _COMPREHENSIONS:
            yield from _codes(each)


def _named(code: CodeType) -> dict[tuple[str, int], CodeType]:
    """All code in this code by its name, and which one of that name it is."""
    seen, named = Counter[str](), dict[tuple[str, int], CodeType]()
    for each in _codes(code):
        named[each.co_qualname, seen[each.co_qualname]] = each
        seen[each.co_qualname] += 1
    return named


def _imported(named: dict[tuple[str, int], CodeType]) -> object:
    """What a module and its classes do when they are imported, but for the functions they make."""
    return [
        (
            name,
            code.co_code,
            code.co_names,
            [each for each in code.co_consts if not isinstance(each, CodeType)],
        )
        for name, code in named.items()
        if not code.co_flags & _OPTIMIZED
    ]


_CONSTANTS = (str, int, float)
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


class Impatience:
    """The plugin that ends the process with SIGALRM when a test takes too long."""

    def pytest_runtest_logstart(self) -> None:
        signal.alarm(PATIENCE)

    def pytest_sessionfinish(self) -> None:
        signal.alarm(PATIENCE)


def main(path: str, text: str, *arguments: str) -> int:
    """Pytest, where `path` is imported as if `text` stood in it."""
    loader = importlib.machinery.SourceFileLoader
    read = loader.get_code
    faulty = Path(text).read_text()

    def get_code(self: importlib.machinery.SourceFileLoader, name: str) -> CodeType | None:
        if self.path == path:
            return compile(faulty, path, "exec", dont_inherit=True)
        return read(self, name)

    loader.get_code = get_code  # type: ignore[method-assign]
    return int(pytest.main(list(arguments), [Impatience()]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
