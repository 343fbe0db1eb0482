"""The stream of a run, by whichever of LangGraph's two streams it is read: always as parts.

`astream(version="v2")` yields parts. `astream_events(version="v3")` yields protocol events, to which a transformer of
ours listens: the events' own log leaves out tasks. A stream that stops between two steps for a message goes on with it,
as one stream. Knows how each is asked, not what parts mean.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Any

from langchain_core.messages import AIMessageChunk, convert_to_messages
from langgraph.config import get_config
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from langgraph.types import Command

from runcast.adapters.adapter import Take
from runcast.adapters.langgraph.intake.breakpoints import RESUMING
from runcast.adapters.langgraph.intake.messages import to_langchain
from runcast.adapters.langgraph.intake.stream_events import StreamEvents
from runcast.adapters.langgraph.options import LangGraphOptions
from runcast.adapters.langgraph.probe import Probe, TokenProbe
from runcast.adapters.langgraph.stream.parts import UNREAD, Aside, Part, messages_of
from runcast.adapters.langgraph.translator import CHECKPOINTS, STREAM_MODES
from runcast.slim.values.type_guards import as_mapping

VAR_KEYWORD = Parameter.VAR_KEYWORD


class StepControl(RunControl):
    """Also stops the root graph alone: before its first step at an open breakpoint, or after one while messages wait."""

    __slots__ = ("_stepped", "take", "waits")

    def __init__(self) -> None:
        super().__init__()
        self.waits: Sequence[Part] = ()  # what the graph sent that stands at a breakpoint that has no answer
        self.take: Take | None = None  # gives the messages that wait
        self._stepped = False

    @property
    def drain_requested(self) -> bool:
        """LangGraph asks this before each step of each graph."""
        if self.stopped or self.waits or _is_inner():
            return self.stopped or bool(self.waits)
        before, self._stepped = self._stepped, True
        return before and self.take is not None

    @property
    def stopped(self) -> bool:
        """Whether the run is to end."""
        return self._drain_reason is not None

    def begin(self) -> None:
        """The graph is started, for the first time or again."""
        self._stepped = False


def _is_inner() -> bool:
    """Whether the caller is a step of a graph inside the root: an inner graph's step may be a tool's, to be run once."""
    try:
        return bool(get_config().get("configurable", {}).get("checkpoint_ns"))
    except RuntimeError:
        return False


@dataclass(slots=True)
class Call:
    """What a graph is run with."""

    input: Any = None
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    context: Any = None
    control: StepControl = field(default_factory=StepControl)
    handed: set[str] = field(default_factory=set[str])  # ids of the messages that it took while it ran


class GraphStream:
    """Opens the stream of one graph, run by run."""

    def __init__(self, graph: Any, options: LangGraphOptions, *, stores: bool, local: bool) -> None:
        """Raises `ValueError` if the options name a stream that this graph does not have."""
        self._graph = graph
        self._options = options
        self._stores = stores
        self._local = local
        modes = [mode for mode in STREAM_MODES if mode != "tools"]  # `Probe` reports tools
        self._modes = (*modes, CHECKPOINTS) if stores else tuple(modes)
        self.version = _version(graph, options, local)
        # a graph with a dataclass or a model as its output makes one of all values, those of a subgraph too,
        # and fails; not in the older form of its parts
        self._form = "v2" if getattr(graph, "_output_mapper", None) is None else "v1"

    def probe(
        self, aside: Callable[[Aside], None], begins: Callable[[Mapping[str, Any] | None], None]
    ) -> Probe:
        """The callback handler that goes with a run; it calls `begins` as anything begins."""
        return Probe(aside, begins) if self.version == "v2" else TokenProbe(aside, begins)

    async def parts(self, call: Call) -> AsyncGenerator[Any, None]:
        """The parts of an asynchronous run. Close it to stop the run."""
        while True:
            call.control.begin()
            try:
                async with aclosing(self._opened(call)) as stream:
                    async for part in stream:
                        yield part
                return
            except GraphDrained:
                if call.control.stopped:
                    raise
            if call.control.waits:
                for part in call.control.waits:
                    yield part
                return
            await self._take(call)

    async def _take(self, call: Call) -> None:
        """Let the call go on after the step before which it stopped, with the messages that wait if no call is open."""
        where = dict(call.config.get("configurable") or {})
        where.pop("checkpoint_id", None)  # of a fork: the run has its own checkpoints now
        where.pop(RESUMING, None)  # the step that had to begin is over
        call.config, call.input = {**call.config, "configurable": where}, None
        key, control = self._options.messages_key, call.control
        held = messages_of((await self._graph.aget_state({"configurable": where})).values, key) or []
        if control.take is not None and not unanswered(held):
            take, control.take = control.take, None
            known = {each.id for each in held}
            new = to_langchain(each for each in await take() if each.id not in known)
            call.handed.update(str(each.id) for each in new)
            call.input = Command(update={key: new}) if new else None

    def _opened(self, call: Call) -> AsyncGenerator[Any, None]:
        if self.version == "v3":
            return self._from_events(call)
        stream: AsyncGenerator[Any, None] = self._graph.astream(call.input, call.config, **self._asked(call))
        if self._form == "v1":
            return _named(stream)
        return stream if self._local else _revived(stream)

    def parts_sync(self, call: Call) -> Iterator[Any]:
        """The parts of a synchronous run, on the caller's own thread."""
        try:
            if self.version == "v3":
                yield from self._from_events_sync(call)
            else:
                parts = self._graph.stream(call.input, call.config, **self._asked(call))
                if not self._local:
                    parts = map(_revived_part, parts)
                yield from map(_part, parts) if self._form == "v1" else parts
        except GraphDrained:
            if call.control.stopped or not call.control.waits:
                raise
            yield from call.control.waits

    def _asked(self, call: Call) -> dict[str, Any]:
        given = self._given(call)
        return {
            "stream_mode": list(self._modes),
            "subgraphs": self._options.subgraphs,
            "version": self._form,
            **given,
        }

    def _given(self, call: Call) -> dict[str, Any]:
        given: dict[str, Any] = {} if call.context is None else {"context": call.context}
        if self._local:
            given["control"] = call.control
            if self._options.durability is not None and self._stores:
                given["durability"] = self._options.durability
        elif (at := as_mapping(call.config.get("configurable")).get("checkpoint_id")) is not None:
            given["checkpoint_id"] = at  # a remote graph leaves it out of the config
        return given

    # ---------------------------------------------------------------- events

    def _listener(self) -> tuple[str, Any]:
        """The name under which the run hands out our parts, and the factory of the transformer that makes them."""
        from langgraph.stream import StreamChannel, StreamTransformer

        modes, events = self._modes, StreamEvents(subgraphs=self._options.subgraphs)
        name = "runcast"

        class Listener(StreamTransformer):
            required_stream_modes = modes

            def __init__(self, scope: tuple[str, ...] = ()) -> None:
                super().__init__(scope)
                self._parts: StreamChannel[Part] = StreamChannel()

            def init(self) -> dict[str, Any]:
                return {name: self._parts}

            def process(self, event: Any) -> bool:
                if not self.scope:  # a subgraph's listener hears again what the root's has heard
                    for part in _read(events, event):
                        self._parts.push(part)
                return True

        return name, Listener

    async def _from_events(self, call: Call) -> AsyncGenerator[Any, None]:
        name, listener = self._listener()
        run = await self._graph.astream_events(
            call.input, call.config, version="v3", transformers=[listener], **self._given(call)
        )
        async with run:
            async for part in run.extensions[name]:
                yield part

    def _from_events_sync(self, call: Call) -> Iterator[Any]:
        name, listener = self._listener()
        run = self._graph.stream_events(
            call.input, call.config, version="v3", transformers=[listener], **self._given(call)
        )
        with run:
            yield from run.extensions[name]


def unanswered(messages: Sequence[Any]) -> set[str]:
    """The tool calls that have no result."""
    made = {str(call["id"]) for each in messages for call in getattr(each, "tool_calls", None) or ()}
    return made.difference(str(each.tool_call_id) for each in messages if each.type == "tool")


def _read(events: StreamEvents, event: Any) -> list[Part]:
    """The parts of an event. One that cannot be read must not end the run: the translator reports it."""
    try:
        return events.parts(event)
    except Exception as error:  # noqa: BLE001  reported
        return [{"type": UNREAD, "ns": (), "data": error}]


def _version(graph: Any, options: LangGraphOptions, local: bool) -> str:
    """The stream to read: parts, unless events are asked for or are all that this LangGraph has."""
    if options.stream == "auto":
        taken = signature(graph.astream).parameters.values() if local else ()
        parts = not local or any(each.name == "version" or each.kind is VAR_KEYWORD for each in taken)
        return "v2" if parts else "v3"
    if options.stream == "v3" and not (local and hasattr(graph, "stream_transformers")):
        raise ValueError(
            "this graph has no v3 event stream here: it is remote, or LangGraph is older than 1.2; "
            'leave LangGraphOptions(stream="auto")'
        )
    return options.stream


async def _named(stream: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
    """Parts of the older form as the newer has them."""
    async with aclosing(stream):
        async for part in stream:
            yield _part(part)


def _part(part: tuple[Any, ...]) -> Part:
    """Namespace (of a graph that shows its subgraphs), mode and data of the older form, by their names."""
    *ns, mode, data = part
    return {"type": mode, "ns": tuple(ns[0]) if ns else (), "data": data}


async def _revived(stream: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
    """A remote graph's parts."""
    async for part in stream:
        yield _revived_part(part)


def _revived_part(part: Any) -> Any:
    """A remote graph's part: its messages come as JSON."""
    if part["type"] != "messages" or not isinstance(part["data"][0], Mapping):
        return part
    message, meta = part["data"]
    return {**part, "data": (_revive(message), meta)}


def _revive(message: Mapping[str, Any]) -> Any:
    if message.get("type") == "AIMessageChunk":
        return AIMessageChunk(**{key: value for key, value in message.items() if key != "type"})
    return convert_to_messages([dict(message)])[0]
