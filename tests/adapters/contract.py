"""What every framework's adapter gives for the same story: the event types, in order.

A run of deltas of one kind counts once, however a model cut them; CUSTOM events are a framework's own. Whoever adds
a framework plays these stories on it and compares with `told`.
"""

from __future__ import annotations

from collections.abc import Iterable

BEGIN = ["RUN_STARTED", "STEP_STARTED"]
TEXT = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
THOUGHT = [
    *("REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT"),
    *("REASONING_MESSAGE_END", "REASONING_END"),
]
CALL = ["TOOL_CALL_START", "TOOL_CALL_ARGS"]
STEP = ["STEP_FINISHED", "STEP_STARTED"]
ANSWER = [*STEP, *TEXT, "STEP_FINISHED", "RUN_FINISHED"]

# story -> the types of each of its runs
STORIES: dict[str, list[list[str]]] = {
    # the model answers in two pieces
    "text": [[*BEGIN, *TEXT, "STEP_FINISHED", "RUN_FINISHED"]],
    # it calls a tool, reads its result and answers
    "tool": [[*BEGIN, *CALL, "TOOL_CALL_END", *STEP, "TOOL_CALL_RESULT", *ANSWER]],
    # it says something, calls a tool, reads its result and answers
    "text and tool": [
        [
            *(
                *BEGIN,
                "TEXT_MESSAGE_START",
                "TEXT_MESSAGE_CONTENT",
                *CALL,
                "TEXT_MESSAGE_END",
                "TOOL_CALL_END",
            ),
            *(*STEP, "TOOL_CALL_RESULT", *ANSWER),
        ]
    ],
    # it calls two tools at once
    "parallel tools": [
        [
            *(*BEGIN, *CALL, *CALL, "TOOL_CALL_END", "TOOL_CALL_END"),
            *(*STEP, "TOOL_CALL_RESULT", "TOOL_CALL_RESULT", *ANSWER),
        ]
    ],
    # it thinks, then answers
    "thought then answer": [[*BEGIN, *THOUGHT, *TEXT, "STEP_FINISHED", "RUN_FINISHED"]],
    # a tool asks before it acts; the answer lets it go on
    "interrupt and resume": [
        [*BEGIN, *CALL, "TOOL_CALL_END", *STEP, "STEP_FINISHED", "RUN_FINISHED"],
        [*BEGIN, "TOOL_CALL_RESULT", *ANSWER],
    ],
    # the model breaks in mid-answer
    "error in mid text": [[*BEGIN, *TEXT, "STEP_FINISHED", "RUN_ERROR"]],
    # somebody stops the run in mid-answer
    "cancel": [[*BEGIN, *TEXT, "STEP_FINISHED", "RUN_FINISHED"]],
    # a node hands over to an agent of its own, which answers
    "subagent": [
        [
            *(*BEGIN, "STEP_FINISHED", "STEP_STARTED", "SUBAGENT_STARTED", "STEP_STARTED", *TEXT),
            *("STEP_FINISHED", "SUBAGENT_FINISHED", "STEP_FINISHED", "RUN_FINISHED"),
        ]
    ],
}
# What the adapters say to the same wrong input: code and sentence of RUN_ERROR.
REFUSALS = {
    "no question": "nothing waits for an answer in this thread: send a message instead of `resume`",
    "unknown question": "no interrupt 'nope' waits in this thread; waiting: {waiting}",
    "answered twice": "interrupt '{waiting}' is answered twice: send one entry for each",
    "too late": "interrupt '{waiting}' has expired: start a new run instead",
    "new message": "this thread waits for answers: send `resume` entries for {waiting}",
    "unknown call": "tool result for unknown call 'nope': send the call's own id",
    "unknown role": "unknown message role 'wizard': send a role of the protocol",
}


def told(types: Iterable[str]) -> list[str]:
    """The types that matter, a run of equal deltas as one."""
    kept: list[str] = []
    for kind in types:
        again = bool(kept) and kept[-1] == kind and kind.endswith(("_CONTENT", "_ARGS"))
        if kind != "CUSTOM" and not again:
            kept.append(kind)
    return kept
