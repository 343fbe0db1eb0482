"""What a run does before its graph starts: read the thread, decide what to ask, build the graph's input and config.

Written once for synchronous and asynchronous graphs: it yields each `Read` and is sent what was found. Knows LangGraph's
API; starts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ag_ui.core import Message, RunAgentInput
from langgraph.constants import START
from langgraph.pregel import Pregel
from langgraph.types import Command

from runcast.adapters.adapter import ResumePoint
from runcast.adapters.client_schemas import AgentSchemas
from runcast.adapters.errors import InvalidInput
from runcast.adapters.langgraph.capabilities import for_client, graphs_in, replacing
from runcast.adapters.langgraph.intake.breakpoints import RESUMING, SAVER, asks, has_breakpoints
from runcast.adapters.langgraph.intake.checkpoint_review import TURN, Review
from runcast.adapters.langgraph.intake.client_channels import client_values
from runcast.adapters.langgraph.intake.command import with_answers
from runcast.adapters.langgraph.intake.messages import to_agui, to_langchain
from runcast.adapters.langgraph.intake.plan import (
    Plan,
    Thread,
    brought_again,
    from_beginning,
    known_ids,
    of_client,
    of_graph,
    plan,
    recalled,
    resumed_from,
    settled,
    with_results,
)
from runcast.adapters.langgraph.intake.run_context import client_configurable, client_input, run_context
from runcast.adapters.langgraph.interrupts import breakpoint_at, call_meant, to_interrupt
from runcast.adapters.langgraph.options import ClientFields, LangGraphOptions
from runcast.adapters.langgraph.probe import Probe
from runcast.adapters.langgraph.running.graphs_inside import GraphsInside, Read, revived
from runcast.adapters.langgraph.running.late_checkpoints import is_update, without_late
from runcast.adapters.langgraph.stream.event_redaction import Rewrite
from runcast.adapters.langgraph.stream.graph_messages import open_calls
from runcast.adapters.langgraph.stream.graph_state import as_state
from runcast.adapters.langgraph.stream.parts import Part, messages_of
from runcast.slim.values.type_guards import as_mapping

RUN = "runcast_run_id"
AFTER = "runcast_after"  # in a checkpoint's metadata: where the thread stood when its run began
WHERE = ("checkpoint_id", SAVER)  # what of a checkpoint's place a run takes over
PARENT = "runcast_parent_run_id"
CLIENT = "ag_ui"  # in `config["configurable"]`: what the client sent beside messages


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that may start. `echo` is the input that RUN_STARTED carries."""

    echo: RunAgentInput
    client: ClientFields
    input: Any
    configurable: Mapping[str, Any]
    metadata: Mapping[str, Any]
    context: Any
    waits: Sequence[Part] = ()
    """What the graph asks that stands at a breakpoint without an answer: the run asks, and runs nothing."""


class Preparation:
    """Prepares the runs of one graph."""

    def __init__(
        self,
        graph: Any,
        config: Mapping[str, Any],
        options: LangGraphOptions,
        context: Any = None,
        schemas: Callable[[], AgentSchemas] = AgentSchemas,
        rewrite: Rewrite | None = None,
    ) -> None:
        self.local = isinstance(graph, Pregel)  # else a RemoteGraph: no run control, its own checkpointer
        self.stores = not self.local or graph.checkpointer not in (None, False, True)
        graphs = list(graphs_in(graph, set()))
        self.has_breakpoints = has_breakpoints(graphs)
        self._has_memories = any(each.checkpointer is True for each in graphs)
        self._graph = graph
        self._config = config
        self._options = options
        self._context = context
        self._schemas = schemas
        self._rewrite = rewrite
        self._context_schema: Any = getattr(graph, "context_schema", None)
        self._for_client = for_client(graph)
        self._replacing = replacing(graph)

    def steps(
        self, input: RunAgentInput, resume: ResumePoint | None, left: str | None = None
    ) -> Generator[Read, Any, Prepared]:
        """Read what the run needs to know, then decide. Raises `InvalidInput` for what makes no sense.

        `left`: the checkpoint at which the thread's last run left it, if that is known.
        """
        graph, at = self._graph, self._where(input)
        anew = resume is not None and resume.framework.get("anew") is True
        resume = None if anew else resume
        thread, state, stood = self._snapshot(resume), None, dict[str, str]()
        if self.stores and (thread is None or (thread.unfinished and self.local)):
            state, at = yield from self._standing(graph, "get_state", at, left)
            stood = {AFTER: _checkpoint_of(state) or ""} if self.local else {}
            stored, thread = thread is None, self._found(state, thread)
            if stored and thread and state.interrupts and self.has_breakpoints:
                stands = yield from self._inside(at).stands(graph, state)
                beside = [breakpoint_at(thread.checkpoint_id)] if stands is not None else []
                thread = replace(thread, interrupts=[*thread.interrupts, *beside])
        elif thread is not None and self.local:
            found, at = yield from self._standing(graph.checkpointer, "get_tuple", at, left)
            stood = {AFTER: "" if found is None else _checkpoint_of(found)}
            if found is None:  # pruned, or the checkpointer is new: the bare tuple costs less than a state
                thread = None
        input = with_answers(input, () if thread is None else thread.interrupts)
        replayed = resume if thread is None else None
        asked = plan(recalled(input, replayed), thread, self._options, now=datetime.now(UTC))
        if anew and thread is not None:
            asked = from_beginning(input, thread)
        inner = self._inside(at)
        if asked.before is not None:
            at, asked = yield from self._fork(asked, at, state, left)
        review = Review(input, resume, replayed, state, self._options, rewrite=self._rewrite)
        for namespace in review.wanted(asked.ask) if self.local else ():
            found = yield inner.read(self._where(input, namespace))
            review.add(namespace, found)
        if state is not None and not anew:  # a point has no open calls
            asked = with_results(asked, self._thread(state, review.stored), self._finished(state))
        prepared = self._prepared(input, thread, asked, at, replayed, review)
        prepared = replace(prepared, metadata={**prepared.metadata, **stood})
        if asked.ask != "continue" or not self.local or state is None:
            return prepared
        if review.half_written:  # from a named checkpoint, LangGraph runs the step anew
            anew_from = {**prepared.configurable, "checkpoint_id": _checkpoint_of(state)}
            return replace(prepared, configurable=anew_from)
        if self._has_memories and (yield from inner.begins(graph, state, state)):
            prepared = replace(prepared, configurable={**prepared.configurable, RESUMING: False})
        stands = (yield from inner.stands(graph, state)) if self.has_breakpoints else None
        return replace(prepared, waits=() if stands is None else asks(state, stands))

    def _fork(
        self, asked: Plan, where: dict[str, Any], state: Any, left: str | None
    ) -> Generator[Read, Any, tuple[Any, Plan]]:
        """The checkpoint at which the run begins, and the plan with what came with the input that followed it."""
        turn = {"source": "input", TURN: asked.before}
        source, method = (
            (self._graph.checkpointer, "list") if self.local else (self._graph, "get_state_history")
        )
        fork = yield Read(source, method, where, filter=turn, first=True)
        if fork is None and self._took(asked, state) and left != _checkpoint_of(state):
            return where, Plan("continue")
        if fork is None:
            raise InvalidInput(
                f"no checkpoint was recorded before message {asked.before!r}, as before one that a running agent "
                "was handed: it cannot be answered again or edited; edit an earlier message, or send a new one"
            )
        taken = fork.checkpoint["channel_values"].get(START) if self.local else None
        at = fork.parent_config or fork.config
        return at, brought_again(asked, to_agui(messages_of(taken, self._options.messages_key) or ()))

    def _took(self, asked: Plan, state: Any) -> bool:
        """Whether a run of ours was handed this very message while it worked. It broke off, and the message is sent again."""
        if state is None or TURN not in as_mapping(state.metadata):
            return False
        held = messages_of(state.values, self._options.messages_key) or ()
        content = {str(each.id): each.content for each in held}
        return [content.get(each.id) for each in asked.messages] == [each.content for each in asked.messages]

    def _standing(
        self, source: Any, method: str, where: dict[str, Any], left: str | None
    ) -> Generator[Read, Any, tuple[Any, dict[str, Any]]]:
        """What the thread holds, read by this method, and where.

        Checkpoints count for nothing of another run that began before the thread was left at `left`, nor what stands on them: a
        worker that slept, and woke when another had its run, stores such.
        """
        newest = yield Read(source, method, where)
        newest = newest if self.local else revived(newest, self._options.messages_key)
        if newest is None or left in (None, _checkpoint_of(newest)) or not self.local or not self.stores:
            return newest, where
        saver, under = self._graph.checkpointer, newest
        while is_update(under) and under.parent_config and left < _checkpoint_of(under):
            under = yield Read(saver, "get_tuple", under.parent_config)  # `update_state` is no run
        own = as_mapping(None if under is None else under.metadata)
        run, at = own.get(RUN), {"configurable": {**where["configurable"], "checkpoint_id": left}}
        is_early = (
            run is not None and own.get(AFTER, left) < left
        )  # ids of checkpoints are in the order of time
        last = (yield Read(saver, "get_tuple", at)) if is_early else None
        if last is None or as_mapping(last.metadata).get(RUN) == run:
            return newest, where
        standing = without_late(saver, RUN, str(run), str(left))
        where = {"configurable": {**where["configurable"], SAVER: standing}}
        return (yield Read(standing if source is saver else source, method, where)), where

    def _inside(self, where: Mapping[str, Any]) -> GraphsInside:
        """The graphs inside, as the thread is read there."""
        own = getattr(self._graph, "checkpointer", None)
        return GraphsInside(where["configurable"].get(SAVER, own))

    def _prepared(
        self,
        input: RunAgentInput,
        thread: Thread | None,
        asked: Plan,
        at: Mapping[str, Any],
        replayed: ResumePoint | None,
        review: Review,
    ) -> Prepared:
        corrections = review.corrections(asked.ask, (*asked.results, *asked.messages))
        aliases = {**(thread.aliases if thread is not None else {}), **corrections.aliases}
        displayed = {message.id for message in corrections.shown or input.messages}
        # a branch leaves out the run that emitted these results
        repeated: list[Message] = [each for each in asked.results if each.id in displayed]
        taken = review.taken() if asked.ask == "continue" else ()
        echo = input.model_copy(update={"messages": [*repeated, *taken, *asked.messages]})
        shown = input.messages
        resumed = resumed_from(asked, thread)
        if replayed is not None:  # its messages are history: they go to the graph, and are not emitted again
            echo, shown, resumed = input, list(asked.messages), "snapshot"
        new = {message.id for message in (*corrections.instead, *asked.results)}
        known = known_ids(shown, thread, asked) | new
        client = ClientFields(
            known=known.difference(corrections.gone, corrections.held),
            held=corrections.held,
            settled=() if thread is None else settled(input, thread.interrupts),
            aliases=aliases,
            resumed_from=resumed,
            shown=corrections.shown,
            gone=corrections.gone,
            instead=corrections.instead,
            order=corrections.order and [*corrections.order, *(each.id for each in asked.messages)],
            results=[each for each in asked.results if each.id not in displayed],
        )
        return Prepared(
            echo,
            client,
            self._graph_input(input, asked, aliases, replayed, review),
            self._configurable(input, at),
            self._metadata(input, asked, review.turn),
            run_context(self._context_schema, self._context, input if self._options.client_config else None),
        )

    # ------------------------------------------------------------- the thread

    def _finished(self, state: Any) -> list[Message]:
        """What tasks of an unfinished step have returned: the graph's state shows it, and new input drops it."""
        return to_agui([message for task in self._tasks(state) for message in self._returned(task)])

    def _tasks(self, state: Any) -> Sequence[Any]:
        return state.tasks if self.local else ()

    def _returned(self, task: Any) -> Sequence[Any]:
        return messages_of(as_mapping(task.result), self._options.messages_key) or ()

    def _where(self, input: RunAgentInput, namespace: str = "") -> dict[str, Any]:
        configurable = {**self._config.get("configurable", {}), "thread_id": input.thread_id}
        if namespace:
            configurable["checkpoint_ns"] = namespace
        return {"configurable": configurable}

    def _found(self, state: Any, thread: Thread | None) -> Thread | None:
        """The thread by the checkpointer or the snapshot; None for a snapshot that lost its checkpoint."""
        if thread is None:
            return self._thread(state)
        checkpoint = _checkpoint_of(state)
        if checkpoint is None:
            return None
        if checkpoint != thread.checkpoint_id:
            turn, held = as_mapping(state.metadata).get(TURN), self._thread(state)
            begun = any(each.id == turn for each in held.messages)  # a graph may remove the message itself
            left = begun and all(each.id != turn for each in thread.messages)
            # the branch that a fork leaves, if the fork broke off before the graph began
            branch = replace(held, aliases=thread.aliases, pointed=True)
            return branch if left else replace(thread, checkpoint_id=checkpoint)
        # Nothing ran since the point: messages that a user sent after it may not be stored.
        stored = {each.id for each in self._thread(state).messages}
        known = [
            at
            for at, each in enumerate(thread.messages)
            if each.role != "user" or thread.aliases.get(each.id, each.id) in stored
        ]
        return replace(thread, messages=thread.messages[: max(known, default=-1) + 1])

    def _snapshot(self, resume: ResumePoint | None) -> Thread | None:
        """The thread by a snapshot: no state is read then."""
        if resume is None or not self.stores:
            return None
        checkpoint_id = resume.framework.get("checkpoint_id")
        return Thread(
            of_client(resume.messages),
            resume.interrupts,
            unfinished=bool(resume.framework.get("unfinished", checkpoint_id is not None)),
            checkpoint_id=checkpoint_id,
            aliases=as_mapping(resume.framework.get("aliases")),
            pointed=True,
        )

    def _thread(self, state: Any, held: Sequence[Any] | None = None) -> Thread:
        """The thread by the checkpointer, without input that no step has taken: the next input replaces it.

        `held`: its messages, if not those of the state.
        """
        starts = [task for task in self._tasks(state) if task.name == START]
        waiting = {message.id for task in starts for message in self._returned(task) if message.id}
        held = messages_of(state.values, self._options.messages_key) if held is None else held
        messages = [message for message in held or () if message.id not in waiting]
        checkpoint_id = _checkpoint_of(state)
        calls = open_calls(messages)
        interrupts = [to_interrupt(each, call_id=call_meant(each.value, calls)) for each in state.interrupts]
        if state.next and not interrupts:
            interrupts = [breakpoint_at(checkpoint_id)]
        return Thread(of_graph(messages), interrupts, bool(state.next), checkpoint_id)

    # ------------------------------------------------------- input and config

    def _graph_input(
        self,
        input: RunAgentInput,
        asked: Plan,
        aliases: Mapping[str, str],
        replayed: ResumePoint | None,
        review: Review,
    ) -> Any:
        if asked.ask == "continue":
            return None
        values: dict[str, Any] = {}
        if replayed is not None and self.local:
            values = _allowed(replayed.state, self._graph.channels)
        if asked.messages or asked.ask == "start":
            messages = to_langchain((*asked.results, *asked.messages))
            for message in messages:
                message.id = aliases.get(str(message.id), message.id)
            values[self._options.messages_key] = messages
        values |= _allowed(input.state, self._options.input_state_keys)
        values |= _allowed(input.forwarded_props, self._options.forwarded_keys)
        if self._options.client_config:
            values |= self._shared(input, review)
            values |= client_input(input, self._schemas)
        if asked.ask != "resume":
            return values | client_values(input, self._for_client)
        # LangGraph takes one update a step, and a step may ask twice: what the client only repeats is none
        values = {key: value for key, value in values.items() if review.changes(key, value)}
        if asked.answers is None:  # a breakpoint: only continue
            return Command(update=values) if values else None
        return Command(resume=dict(asked.answers), update=values or None)

    def _shared(self, input: RunAgentInput, review: Review) -> dict[str, Any]:
        """What the client changed of the state that it shares. It repeats the rest as it was shown, perhaps redacted."""
        accepted = as_mapping(as_mapping(self._schemas().get("input")).get("schema")).get("properties") or ()
        sent = _allowed(input.state, self._replacing.intersection(accepted))
        return {key: value for key, value in sent.items() if review.changes(key, value)}

    def _configurable(self, input: RunAgentInput, at: Mapping[str, Any]) -> dict[str, Any]:
        client = client_configurable(input) if self._options.client_config else {}
        configurable: dict[str, Any] = {**self._where(input)["configurable"], **client}
        configurable |= {key: at["configurable"][key] for key in WHERE if key in at["configurable"]}
        configurable[CLIENT] = {
            "tools": [tool.model_dump(by_alias=True) for tool in input.tools or ()],
            "context": [each.model_dump(by_alias=True) for each in input.context or ()],
            "forwarded_props": input.forwarded_props,
        }
        return configurable

    def _metadata(self, input: RunAgentInput, asked: Plan, turn: str | None) -> dict[str, Any]:
        said = next((message.id for message in asked.messages if message.role == "user"), None)
        began = turn if said is None and asked.ask in ("continue", "resume") else said
        noted = {RUN: input.run_id, PARENT: input.parent_run_id, TURN: began}
        kept = {key: value for key, value in noted.items() if value is not None}
        return {**self._config.get("metadata", {}), **kept}

    def config(self, prepared: Prepared, probe: Probe) -> dict[str, Any]:
        """The config to run the graph with; `probe` goes with it."""
        return {
            **self._config,
            "configurable": dict(prepared.configurable),
            "metadata": dict(prepared.metadata),
            "callbacks": probe.beside(self._config.get("callbacks")),
        }


def _checkpoint_of(state: Any) -> Any:
    """The id of the checkpoint a state was read from; None where there is none."""
    return as_mapping(as_mapping(state.config).get("configurable")).get("checkpoint_id")


def _allowed(values: Any, keys: Collection[str]) -> dict[str, Any]:
    held = as_state(values) or {}
    return {key: held[key] for key in keys if key in held}
