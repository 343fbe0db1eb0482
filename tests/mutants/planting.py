"""Puts a fault into the running process: the functions of its file get the code that the changed text has.

It refuses where the fault is no function's, or stands in what ran at import: then a new interpreter imports the changed
text (`python -m tests.mutants.planting file text …`, and the rest is for pytest).
"""

from __future__ import annotations

import gc
import importlib.machinery
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

import pytest

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
        list(_codes(compile(each, str(path), "exec", dont_inherit=True))) for each in (path.read_text(), text)
    )
    if [_shape(each) for each in sound] != [_shape(each) for each in faulty]:
        raise LookupError(path)
    swapped = dict(zip(sound, faulty, strict=True))
    codes = [swapped[each.__code__] for each in found]
    for function, code in zip(found, codes, strict=True):
        function.__code__ = code


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _shape(code: CodeType) -> object:
    """What has to stay. Of a module or a class, also what it does when it is imported, but for the functions it makes."""
    shape = (code.co_qualname, code.co_freevars)
    if code.co_flags & _OPTIMIZED:
        return shape
    return (
        *shape,
        code.co_code,
        code.co_names,
        [each for each in code.co_consts if not isinstance(each, CodeType)],
    )


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
    return int(pytest.main(list(arguments)))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
