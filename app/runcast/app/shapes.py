"""What travels over HTTP as JSON: bodies that are taken and answers that are given, as types.

Handlers are held to them by the type checkers, clients by the OpenAPI description that is made of them. Data alone;
knows the protocol's own models; does not know routes.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from ag_ui.core import AgentCapabilities, ResumeEntry, RunAgentInput
from pydantic import Field
from typing_extensions import TypedDict  # pydantic asks for this one before Python 3.12

from runcast.slim.stores.records import Edge, RunStatus

LONGEST_ID = 512
LONGEST_MESSAGE = 200_000  # characters of a message that is said by the page's form

Identifier = Annotated[
    str, Field(min_length=1, max_length=LONGEST_ID, pattern=r"^[^\x00-\x1f\x7f]+$", title="Identifier")
]
Said = Annotated[str, Field(min_length=1, max_length=LONGEST_MESSAGE)]
Seq = Annotated[int, Field(ge=0)]
Millis = Annotated[int, Field(description="milliseconds since the Unix epoch")]


class Problem(TypedDict):
    """What went wrong, as problem+json: `detail` is a sentence that says what to do."""

    type: str
    title: str
    status: int
    detail: str


class HubRefusal(TypedDict):
    """What went wrong, as clients of the Pusher protocol expect it."""

    error: str


class Health(TypedDict):
    """This host takes runs."""

    status: Literal["ok"]
    runs: NotRequired[int]


class AgentRow(TypedDict):
    """An agent and what it can do."""

    name: str
    capabilities: AgentCapabilities


class AgentList(TypedDict):
    """The agents there are."""

    agents: list[AgentRow]


class ThreadRow(TypedDict):
    """A thread: how long it is, and whether somebody is writing it."""

    thread_id: str
    last_seq: Seq
    created_at: Millis
    updated_at: Millis
    active: bool


class ThreadList(TypedDict):
    """Threads by id; `next` is the `after` of the next page, null behind the last."""

    threads: list[ThreadRow]
    next: str | None


class EnvelopeShape(TypedDict):
    """What a watcher is told."""

    type: str
    session_id: str
    execution_id: str
    timestamp: str
    payload: dict[str, Any]
    seq: Seq
    prev: Seq
    epoch: str
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
    events: list[EventRow]


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
    """What a thread weighs, in events and bytes."""

    events: int
    bytes: int
    compacted: int | None
    snapshot: int | None


class RunList(TypedDict):
    """A thread's runs, oldest first, and what it weighs."""

    runs: list[RunRow]
    size: Size


class ToolResult(TypedDict):
    """All that a tool answered."""

    content: Any


class Started(TypedDict):
    """The run that was begun, or is being ended."""

    thread_id: str
    run_id: str


class Stopped(TypedDict):
    """A run that was asked to end: `stopping` here, `asked` of the node that has it, `stopped` before it began."""

    thread_id: str
    run_id: str
    status: Literal["stopped", "stopping", "asked"]


class Say(TypedDict):
    """One more message for an agent; `agent` may be left out where the thread or the host has only one."""

    message: Said
    agent: NotRequired[Identifier | None]
    from_run: NotRequired[Identifier | None]


class Branch(TypedDict):
    """As `Say`, behind a run that has to be named."""

    message: Said
    from_run: Identifier
    agent: NotRequired[Identifier | None]


class Resume(TypedDict):
    """Answers to open questions, by interrupt id or as the protocol's resume entries; none to go on after a crash."""

    answers: NotRequired[list[ResumeEntry] | dict[str, Any] | None]


class Stop(TypedDict):
    """How to end a run: at the next border its framework has, or at once."""

    hard: NotRequired[bool]


class RunInput(RunAgentInput):
    """AG-UI's RunAgentInput, with the ids this host takes. Older dialects are read too."""

    thread_id: Identifier
    run_id: Identifier
    parent_run_id: Identifier | None = None


class TokenFor(TypedDict):
    """The thread that is to be watched."""

    thread_id: Identifier


class Token(TypedDict):
    """A token that lets a socket watch one thread for so many seconds."""

    thread_id: str
    token: str
    expires_in: int


class ChannelAuth(TypedDict):
    """What Echo and pusher-js send as a form; `epoch` and `offset` are where the reader stands."""

    socket_id: str
    channel_name: str
    session_id: NotRequired[str]
    epoch: NotRequired[str]
    offset: NotRequired[int]


class ChannelProof(TypedDict):
    """The signature that lets a socket into a channel."""

    auth: str
    channel_data: NotRequired[str]
