"""The files of the page, as they stand in the wheel: compiled from `app/web`, never changed at run time.

Knows names, content types and the headers each is sent with; does not know routes or who asks.
"""

from __future__ import annotations

from dataclasses import dataclass
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
HASHED = "assets/"  # files whose names change with their content


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
