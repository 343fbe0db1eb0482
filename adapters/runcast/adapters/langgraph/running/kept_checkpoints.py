"""What a graph's checkpointer keeps of a thread: deleted, written as rows, and read again, from any other checkpointer.

A row is JSON: a value once, by the digest of its bytes, or a checkpoint that names its values. Rows may come from anywhere,
so reading builds only what LangGraph's strict serializer builds (messages, plain Python values) and the types that the
graph's owner names; anything else refuses the whole thread, before the first write. Knows savers; does not know files.
"""

from __future__ import annotations

import asyncio
import threading
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import ormsgpack
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.event_hooks import register_serde_event_listener
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from runcast.adapters.errors import InvalidInput

KINDS = ("null", "bytes", "bytearray", "msgpack")  # never "pickle", nor "json", which names constructors
RUN_IDS = ("runcast_run_id", "runcast_parent_run_id")
BASE: Any = BaseCheckpointSaver
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Kept:
    """A checkpoint as it is stored."""

    ns: str
    parent: str | None
    checkpoint: Any
    metadata: Any
    writes: dict[str, list[tuple[str, Any]]]  # by task


@dataclass(frozen=True, slots=True)
class KeptCheckpoints:
    """The checkpoints of one saver; none where a remote graph keeps its own."""

    saver: Any
    types: Collection[type] = field(
        default=(), compare=False
    )  # of the state, that rows from elsewhere may hold

    @property
    def _local(self) -> bool:
        return isinstance(self.saver, BASE)

    async def forget(self, thread_id: str) -> None:
        """Delete the thread's checkpoints, of subgraphs too."""
        if self._local:
            await self._call("delete_thread", thread_id)

    async def rows(self, thread_id: str, *, prefix: str = "") -> AsyncIterator[Row]:
        """The thread's checkpoints, the oldest first; `prefix` is what its ids carry in this saver."""
        pack, known = JsonPlusSerializer(), set[str]()
        for each in reversed(await self._tuples(prefix + thread_id)):
            metadata = {
                name: value.removeprefix(prefix) if name in RUN_IDS and isinstance(value, str) else value
                for name, value in each.metadata.items()
                if name != "thread_id"
            }
            values = each.checkpoint["channel_values"]
            rest = {name: value for name, value in each.checkpoint.items() if name != "channel_values"}
            writes = [(task, channel, value) for task, channel, value in each.pending_writes or ()]
            row: Row = {"ns": each.config["configurable"].get("checkpoint_ns", "")}
            if each.parent_config is not None:
                row["parent"] = each.parent_config["configurable"]["checkpoint_id"]
            for name, value in (("checkpoint", rest), ("metadata", metadata)):
                row[name] = _packed(pack, value)
            row["values"], row["writes"] = {}, []
            for name, value in values.items():
                key, packed = _keyed(pack, value)
                if key not in known:
                    known.add(key)
                    yield {"value": key, "is": packed}
                row["values"][name] = key
            row["writes"] = [[task, channel, _packed(pack, value)] for task, channel, value in writes]
            yield row

    async def store(self, thread_id: str, rows: Sequence[Row], *, prefix: str = "") -> None:
        """Store such rows. A thread that has checkpoints here is refused."""
        if not self._local:
            raise InvalidInput("the graph has no checkpointer here: compile it with one, then import")
        found = self._read(rows, prefix)
        if await self._tuples(prefix + thread_id):
            raise InvalidInput(
                f"the graph's checkpointer has a thread {thread_id!r} already: forget it first"
            )
        for each in found:
            place = {"thread_id": prefix + thread_id, "checkpoint_ns": each.ns}
            before = {"configurable": place | ({} if each.parent is None else {"checkpoint_id": each.parent})}
            versions = each.checkpoint["channel_versions"]
            await self._call("put", before, each.checkpoint, each.metadata, versions)
            at = {"configurable": place | {"checkpoint_id": each.checkpoint["id"]}}
            for task, writes in each.writes.items():
                await self._call("put_writes", at, writes, task)

    def _read(self, rows: Sequence[Row], prefix: str) -> list[_Kept]:
        reader = _Reader(self.types)
        values: dict[str, Any] = {}
        found: list[_Kept] = []
        try:
            for row in rows:
                if "value" in row:
                    values[row["value"]] = reader.read(row["is"])
                    continue
                checkpoint, metadata = (
                    _mapping(reader.read(row[name])) for name in ("checkpoint", "metadata")
                )
                checkpoint["channel_values"] = {name: values[key] for name, key in row["values"].items()}
                checkpoint["channel_versions"] = _mapping(checkpoint["channel_versions"])
                for name in RUN_IDS:
                    if isinstance(metadata.get(name), str):
                        metadata[name] = prefix + metadata[name]
                writes: dict[str, list[tuple[str, Any]]] = {}
                for task, channel, packed in row["writes"]:
                    writes.setdefault(_text(task), []).append((_text(channel), reader.read(packed)))
                _text(checkpoint["id"])
                parent = row.get("parent")
                found.append(
                    _Kept(
                        _text(row["ns"]),
                        None if parent is None else _text(parent),
                        checkpoint,
                        metadata,
                        writes,
                    )
                )
        except (KeyError, TypeError, ValueError, ormsgpack.MsgpackDecodeError) as error:
            raise InvalidInput(f"a row of the archive is no checkpoint: {error}") from error
        return found

    async def _tuples(self, thread_id: str) -> list[Any]:
        """The thread's checkpoints, the newest first."""
        if not self._local:
            return []
        config = {"configurable": {"thread_id": thread_id}}
        try:
            return [each async for each in self.saver.alist(config)]
        except RuntimeError:  # a saver of synchronous programs
            return await asyncio.to_thread(lambda: list(self.saver.list(config)))

    async def _call(self, name: str, *given: Any) -> None:
        """Call a method of the saver: in a thread where it has the synchronous one alone."""
        try:
            await getattr(self.saver, f"a{name}")(*given)
        except RuntimeError:  # a saver of synchronous programs
            await asyncio.to_thread(getattr(self.saver, name), *given)


class _Reader:
    """Reads packed values, and builds nothing but what may be built."""

    def __init__(self, types: Collection[type]) -> None:
        names = [(each.__module__, each.__name__) for each in types]
        self._serde = JsonPlusSerializer(allowed_msgpack_modules=names or None)

    def read(self, packed: Any) -> Any:
        kind, data = packed
        if kind not in KINDS:
            raise ValueError(f"a value of the kind {kind!r:.40} is never read")
        here, blocked = threading.get_ident(), list[str]()

        def listen(event: Mapping[str, Any]) -> None:
            if threading.get_ident() == here and event["kind"] != "msgpack_unregistered_allowed":
                blocked.append(".".join((event["module"], event["name"])))

        stop = register_serde_event_listener(listen)
        try:
            value = self._serde.loads_typed((kind, b64decode(data, validate=True)))
        finally:
            stop()
        if blocked:
            raise ValueError(
                f"it holds a {blocked[0]}, which this graph does not expect: name the type in "
                "LangGraphOptions(import_types=…), if the archive is yours"
            )
        return value


def _packed(serde: JsonPlusSerializer, value: Any) -> list[str]:
    try:
        kind, data = serde.dumps_typed(value)
    except (TypeError, ormsgpack.MsgpackEncodeError) as error:
        raise InvalidInput(f"a value of the graph's state cannot leave its checkpointer: {error}") from error
    return [kind, b64encode(data).decode()]


def _keyed(serde: JsonPlusSerializer, value: Any) -> tuple[str, list[str]]:
    packed = _packed(serde, value)
    return blake2b(" ".join(packed).encode(), digest_size=16).hexdigest(), packed


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{type(value).__name__} where names and values belong")
    return dict(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]  # from a serializer


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where a text belongs")
    return value
