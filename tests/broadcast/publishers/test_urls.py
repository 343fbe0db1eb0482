"""Publishers are found by looking, each by its URLs, and each has its contract in a test module of its own."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import pytest

from runcast.broadcast import ConfigError, Publisher, open_publisher, publishers
from tests.broadcast.publishers.contract import PublisherContract

MODULES = [module.name for module in iter_modules(publishers.__path__)]
FOUND = {
    name: import_module(f"runcast.broadcast.publishers.{name}")
    for name in MODULES
    if hasattr(import_module(f"runcast.broadcast.publishers.{name}"), "SCHEMES")
}


@pytest.mark.parametrize("name", FOUND)
def test_a_publisher_has_a_test_module_that_brings_its_server(name: str) -> None:
    module = import_module(f"tests.broadcast.publishers.test_{name}")
    kept = [
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, PublisherContract)
    ]
    assert [each for each in kept if each.__name__.startswith("Test")], (
        f"give tests/broadcast/publishers/test_{name}.py a class Test…(PublisherContract) with a fixture `place`"
    )


def test_no_two_publishers_take_one_scheme() -> None:
    schemes = [scheme for module in FOUND.values() for scheme in module.SCHEMES]
    assert len(schemes) == len(set(schemes))


def test_a_url_of_no_publisher_is_refused_with_the_schemes_that_there_are() -> None:
    with pytest.raises(ConfigError, match="no publisher takes kafka://; there are ") as refused:
        open_publisher("kafka://x")
    for module in FOUND.values():
        assert all(scheme in str(refused.value) for scheme in module.SCHEMES)


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("reverb://host/1", "give reverb://key:secret@host:port/app_id"),
        ("centrifugo://host", "give centrifugo://:api_key@host:port"),
        ("pusher+ftp://k:s@host/1", "is not a target"),
    ],
)
def test_a_url_that_cannot_work_is_refused_with_one_that_can(url: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        open_publisher(url)


def test_tls_is_a_part_of_the_scheme() -> None:
    for url in ("pusher+https://k:s@host/1", "centrifugo+https://:k@host", "soketi+https://k:s@host:1/1"):
        assert isinstance(open_publisher(url), Publisher)
