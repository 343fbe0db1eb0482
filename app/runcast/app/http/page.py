"""The files of the page, as they stand in the wheel: compiled from `app/web`, never changed at run time.

Knows names, content types and the headers each is sent with; does not know routes or who asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "ts": "text/plain; charset=utf-8",
}
PRICED = {"input", "output", "cached"}
NOT_COMPILED = "this host has no page, because its checkout was not compiled: run `make web` there"
HASHED = "assets/"  # files whose names change with their content


@dataclass(frozen=True, slots=True)
class PageOptions:
    """What the page is configured with: `cast.asgi(page=PageOptions(prices={"gpt-5": {"input": 1.25, "output": 10}}))`."""

    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])
    """By model, the price of a million tokens: `input`, `output`, and `cached` input where that costs less."""
    currency: str = "$"
    demo: bool = False
    """Whether the host is `runcast demo`, whose worker the page can kill."""

    def __post_init__(self) -> None:
        for model, price in self.prices.items():
            if not {"input", "output"} <= price.keys() <= PRICED or min(price.values()) < 0:
                raise ValueError(
                    f"the price of {model!r} needs `input` and `output`, may have `cached`, each 0 or more"
                )


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file of the page, and how it is sent."""

    name: str
    kind: str

    @property
    def headers(self) -> dict[str, str]:
        """The headers beside its content type."""
        kept = "public, max-age=31536000, immutable" if self.name.startswith(HASHED) else "no-cache"
        return {
            "content-security-policy": POLICY,
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cache-control": kept,
        }

    def read(self) -> bytes:
        """Its bytes."""
        return _folder().joinpath(*self.name.split("/")).read_bytes()


def find_file(path: str) -> PageFile | None:
    """The file at this path below the mount; the page itself at the empty one."""
    return _known().get(path or "index.html")


def _folder() -> Traversable:
    return files("runcast.app").joinpath("page")


@cache
def _known() -> dict[str, PageFile]:
    """Every file there is; none where the page was not compiled (`make web`)."""
    return {
        name: PageFile(name, KINDS[suffix])
        for name in _names(_folder(), "")
        if (suffix := name.rpartition(".")[2]) in KINDS
    }


def _names(folder: Traversable, below: str) -> list[str]:
    if not folder.is_dir():
        return []
    return [
        name
        for each in folder.iterdir()
        for name in (_names(each, f"{below}{each.name}/") if each.is_dir() else [below + each.name])
    ]
