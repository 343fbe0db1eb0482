"""Every store that is found, each as a URL to something empty, so that one fixture runs a test over all of them."""

from __future__ import annotations

import pkgutil
from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from runcast.slim import stores
from runcast.slim.stores import Store, blob_codec, open_store
from tests.servers import postgres_server

__all__ = ["postgres_server"]


def schemes() -> list[str]:
    """The stores there are: files in the folder with a `connect` of their own."""
    folder = Path(stores.__path__[0])
    names = [module.name for module in pkgutil.iter_modules([str(folder)]) if not module.ispkg]
    return [name for name in names if "\ndef connect(url" in (folder / f"{name}.py").read_text()]


def tests_of(scheme: str) -> Any:
    """The test module of a store."""
    return import_module(f"tests.slim.stores.test_{scheme}")


def empty(scheme: str, request: pytest.FixtureRequest) -> str:
    """A URL of this scheme with nothing behind it: the test module of the store brings it, as `empty(request)`."""
    url: str = tests_of(scheme).empty(request)
    return url


def shared() -> list[str]:
    """The stores that two processes can open; of a store in one process the test module has `SHARED = False`."""
    return [name for name in schemes() if getattr(tests_of(name), "SHARED", True)]


@pytest.fixture(params=schemes())
def store_url(request: pytest.FixtureRequest) -> str:
    """Something empty of every kind."""
    return empty(request.param, request)


@pytest.fixture(params=shared())
def shared_url(request: pytest.FixtureRequest) -> str:
    """Something empty that two stores can open at once, as two processes would."""
    return empty(request.param, request)


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    """A store over it, closed afterwards."""
    it = open_store(store_url)
    yield it
    await it.close()


@pytest.fixture
def bare_python(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Python built without lzma, and without zstd."""

    def lacking(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(blob_codec, "import_module", lacking)
    blob_codec._squeeze.cache_clear()
    yield
    blob_codec._squeeze.cache_clear()
