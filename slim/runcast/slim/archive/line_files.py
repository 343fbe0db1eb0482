"""Lines to a file and back, compressed when the name ends in `.gz`.

Knows files; does not know the content of the lines. Disk and compression work in threads.
"""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from runcast.slim.errors import StoreError
from runcast.slim.wire.splitters import LineSplitter

PIECE = 1 << 20
LONGEST = 64 << 20  # bytes of a line: a small compressed file may hold one without an end


def _open(path: Path, mode: str) -> BinaryIO:
    opened = gzip.GzipFile(path, mode) if path.suffix == ".gz" else path.open(mode)
    return cast("BinaryIO", opened)


async def write_file(path: Path, lines: AsyncIterator[bytes]) -> int:
    """Write all lines, or leave no file; returns their number."""
    part = path.with_name(f".{path.name}.part.gz" if path.suffix == ".gz" else f".{path.name}.part")
    try:
        file = await asyncio.to_thread(_open, part, "wb")
        try:
            count = await _write(file, lines)
        finally:
            await asyncio.to_thread(file.close)
        await asyncio.to_thread(part.replace, path)
    except BaseException as error:
        with suppress(OSError):
            part.unlink()
        if isinstance(error, OSError):
            raise StoreError(f"{path} cannot be written: {error}") from error
        raise
    return count


async def _write(file: BinaryIO, lines: AsyncIterator[bytes]) -> int:
    count, piece = 0, bytearray()
    async for line in lines:
        count += 1
        piece += line
        if len(piece) >= PIECE:
            await asyncio.to_thread(file.write, bytes(piece))
            piece.clear()
    await asyncio.to_thread(file.write, bytes(piece))
    return count


async def read_file(path: Path) -> AsyncGenerator[bytes]:
    """The lines of a file that are not blank, without their ends; one over the limit is a `WireError`."""
    try:
        file = await asyncio.to_thread(_open, path, "rb")
        try:
            splitter = LineSplitter(LONGEST)
            while piece := await asyncio.to_thread(file.read, PIECE):
                for _, line in splitter.feed(piece):
                    yield line
            for _, line in splitter.finish():
                yield line
        finally:
            await asyncio.to_thread(file.close)
    except (OSError, EOFError, zlib.error) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
