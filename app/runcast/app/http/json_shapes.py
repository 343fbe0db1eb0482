"""The JSON of the HTTP API, as types: request bodies and answers.

Type checkers hold the handlers to them; clients see them in the OpenAPI document. Data only; does not know routes.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from ag_ui.core import AgentCapabilities, ContentPart, ResumeEntry, RunAgentInput
from pydantic import ConfigDict, Field
from typing_extensions import TypedDict  # pydantic asks for this one before Python 3.12

from runcast.adapters import AgentSchemas
from runcast.app.nodes.annotations import LONGEST_TYPE, Annotation
from runcast.app.nodes.handover import OnBusy
from runcast.app.runs.handle import Accepted
from runcast.slim.stores.records import Edge, RunStatus
from runcast.slim.values.identifiers import LONGEST_ID

LONGEST_MESSAGE = 200_000  # characters of a message from the page's form
LONGEST_TITLE = 200  # characters

Identifier = Annotated[
    str,
    Field(
        min_length=1,
        max_length=LONGEST_ID,
        pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$",
        title="Identifier",
    ),
]
MessageText = Annotated[str, Field(min_length=1, max_length=LONGEST_MESSAGE)]
Said = MessageText | Annotated[list[ContentPart], Field(min_length=1)]
Seq = Annotated[int, Field(ge=0)]
Millis = Annotated[int, Field(description="milliseconds since the Unix epoch")]


class Problem(TypedDict):
    """An error as problem+json: `detail` is a sentence with what to do."""

    type: str
    title: str
    status: int
    detail: str


class HubRefusal(TypedDict):
    """An error as clients of the Pusher protocol expect it."""

    error: str


class Health(TypedDict):
    """This host accepts runs."""

    status: Literal["ok"]
    runs: NotRequired[int]


class AgentRow(TypedDict):
    """An agent: what it can do, takes and shows."""

    name: str
    description: NotRequired[str]
    capabilities: AgentCapabilities
    schemas: AgentSchemas
    on_busy: OnBusy


class GraphNode(TypedDict):
    """A node of an agent's graph; its name is that of its step, subagent or tool in the events."""

    id: str
    name: str
    kind: Literal["start", "end", "node", "agent", "tool"]


class GraphEdge(TypedDict):
    """An edge between two nodes, by their ids."""

    source: str
    target: str
    label: str
    conditional: bool


class Graph(TypedDict):
    """An agent's graph; empty where the agent cannot draw itself."""

    nodes: list[GraphNode]
    edges: list[GraphEdge]


class AgentList(TypedDict):
    """The agents of this host."""

    agents: list[AgentRow]


class ThreadRow(TypedDict):
    """A thread: its length, its title if it was given one, its newest run's status, whether a run is active in it."""

    thread_id: str
    last_seq: Seq
    created_at: Millis
    updated_at: Millis
    active: bool
    title: str | None
    status: RunStatus | None


class ThreadList(TypedDict):
    """Threads by id; `next` is the `after` of the next page, null behind the last one."""

    threads: list[ThreadRow]
    next: str | None


class EnvelopeShape(TypedDict):
    """What a watcher receives."""

    type: str
    session_id: str
    execution_id: str
    timestamp: str
    payload: dict[str, Any]
    seq: Seq
    prev: Seq
    epoch: str
    mark: NotRequired[str]
    part: NotRequired[list[int]]


class EnvelopePage(TypedDict):
    """Envelopes behind a position; with `recovered: false` there are none, and the reader starts over."""

    recovered: bool
    epoch: str
    head: Seq
    envelopes: list[EnvelopeShape]
    more: bool


class EventRow(TypedDict):
    """An AG-UI event and its place in the log."""

    seq: Seq
    event: dict[str, Any]


class EventPage(TypedDict):
    """AG-UI events behind a position; with `recovered: false` there are none, and the reader starts over."""

    recovered: bool
    epoch: str
    head: Seq
    more: bool
    mark: NotRequired[str]  # binds the position behind the last of them
    events: list[EventRow]


class ChatPost(TypedDict):
    """What the AI SDK's `useChat` sends, and `answers` by interrupt for questions that no approval answers.

    `tools` are the page's own, by name, as assistant-ui sends them.
    """

    id: Identifier
    messages: list[dict[str, Any]]
    answers: NotRequired[dict[str, Any]]
    tools: NotRequired[dict[str, Any]]


class ChatMessages(TypedDict):
    """UI messages of the AI SDK."""

    messages: list[dict[str, Any]]


class JoinPage(TypedDict):
    """The events that bring an empty client to the thread's end; `head` is the `seq` of that."""

    epoch: str
    head: Seq
    mark: NotRequired[str]  # binds the position `head`
    events: list[dict[str, Any]]


class RunRow(TypedDict):
    """A run and its place in the thread's tree."""

    run_id: str
    parent: str | None
    edge: Edge
    attempt: int
    status: RunStatus
    first_seq: Seq
    last_seq: Seq
    started_at: Millis
    ended_at: int | None
    terminal: str | None
    usage: list[dict[str, Any]]
    pruned: bool


class Size(TypedDict):
    """The size of a thread, in events and bytes."""

    events: int
    bytes: int
    compacted: int | None
    snapshot: int | None


class RunList(TypedDict):
    """A thread's runs, oldest first, and its size."""

    runs: list[RunRow]
    size: Size


class WholeMessage(TypedDict):
    """A message as AG-UI writes it."""

    message: dict[str, Any]


class ToolResult(TypedDict):
    """A tool's whole result."""

    content: Any


class Body(TypedDict):
    """A request's body: a field that is not known is an error."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]  # how pydantic reads it


class Started(TypedDict):
    """A run that was started, a message that waits, or one for the agent that runs: a run of its own will have this id."""

    thread_id: str
    run_id: str
    status: Accepted


class Stopped(TypedDict):
    """A stopped run: `stopping` here, `asked` of the node that runs it, or `stopped` before it started."""

    thread_id: str
    run_id: str
    status: Literal["stopped", "stopping", "asked"]


class Say(Body):
    """One more message for an agent; `agent` may be left out where the thread or the host has only one."""

    message: Said
    agent: NotRequired[Identifier | None]
    from_run: NotRequired[Identifier | None]
    forwarded_props: NotRequired[dict[str, Any] | None]
    on_busy: NotRequired[OnBusy | None]


class Edit(Body):
    """Other words for a message that waits."""

    message: MessageText


class QueueRow(TypedDict):
    """A message that waits until the thread's run ends, under the id that its own run will have."""

    run_id: str
    text: str
    on_busy: OnBusy
    agent: str
    at: Millis
    files: int


class QueueList(TypedDict):
    """The messages that wait in a thread, the next one first."""

    messages: list[QueueRow]


class Branch(Body):
    """As `Say`, behind a named run."""

    message: Said
    from_run: Identifier
    agent: NotRequired[Identifier | None]
    forwarded_props: NotRequired[dict[str, Any] | None]


class Resume(Body):
    """Answers to open questions, by interrupt id or as the protocol's resume entries; none to continue after a crash."""

    answers: NotRequired[list[ResumeEntry] | dict[str, Any] | None]


class Stop(Body):
    """How to stop a run: at its framework's next step, or at once."""

    hard: NotRequired[bool]


class RunInput(RunAgentInput):
    """AG-UI's RunAgentInput, with the ids this host accepts. Older dialects are read too."""

    thread_id: Identifier
    run_id: Identifier
    parent_run_id: Identifier | None = None


class Titled(TypedDict):
    """A thread's title; null where it has none."""

    title: str | None


class Rename(Body):
    """A title for a thread; null takes it away."""

    title: Annotated[str, Field(min_length=1, max_length=LONGEST_TITLE)] | None


class Annotate(Body):
    """Something to note on a thread, as AG-UI's draft of META has it; a payload of null takes back what has this id."""

    metaType: Annotated[str, Field(min_length=1, max_length=LONGEST_TYPE)]
    payload: dict[str, Any] | None
    id: NotRequired[Identifier]


class AnnotationList(TypedDict):
    """A thread's annotations as they stand, oldest first."""

    annotations: list[Annotation]


class PageSettings(TypedDict):
    """What the page is configured with: prices of a million tokens by model, and whether a demo has its controls there."""

    prices: dict[str, dict[str, float]]
    currency: str
    demo: bool


class Forgot(TypedDict):
    """The thread is gone, or the request is durable and a node finishes it (202)."""

    thread_id: str
    status: Literal["forgotten", "forgetting"]


class TokenFor(Body):
    """The thread to watch."""

    thread_id: Identifier


class Token(TypedDict):
    """A token with which a socket may watch one thread for so many seconds."""

    thread_id: str
    token: str
    expires_in: int


class ChannelAuth(TypedDict):
    """The form that Echo and pusher-js send; `epoch` and `offset` are the reader's position."""

    socket_id: str
    channel_name: str
    session_id: NotRequired[str]
    epoch: NotRequired[str]
    offset: NotRequired[int]


class ChannelProof(TypedDict):
    """The signature with which a socket joins a channel."""

    auth: str
    channel_data: NotRequired[str]
