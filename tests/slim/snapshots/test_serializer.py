"""A snapshot is small whatever the thread holds, and says what was left out."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from ag_ui.core import (
    AssistantMessage,
    AudioPart,
    DataSource,
    DocumentPart,
    FileSource,
    FunctionCall,
    ImagePart,
    Interrupt,
    Message,
    ReasoningMessage,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UrlSource,
    UserMessage,
)

from runcast.slim.folding.step_records import StepRecord, Usage
from runcast.slim.snapshots.agent_state import AgentState
from runcast.slim.snapshots.serializer import AgentSerializer, SlimSerializer
from runcast.slim.snapshots.slim_config import SlimConfig
from tests.slim.threads import Teller, nested, prose

STANDARD = SlimSerializer()
SIGNED = ToolCall(id="k", function=FunctionCall(name="f", arguments="{}"), encrypted_value="sig")


def weigh(snapshot: dict[str, Any]) -> int:
    return len(json.dumps(snapshot, ensure_ascii=False).encode())


def user(number: int, content: Any = None) -> UserMessage:
    return UserMessage(id=f"u{number}", content=content or f"question {number}")


def told(*messages: Message, **fields: Any) -> AgentState:
    return AgentState(agent_id="a", history=messages, **fields)


def calling(*ids: str, arguments: str = '{"q": 1}', **fields: Any) -> AssistantMessage:
    calls = [ToolCall(id=each, function=FunctionCall(name="f", arguments=arguments)) for each in ids]
    return AssistantMessage(id=f"a-{ids[0]}", tool_calls=calls, **fields)


def result(call_id: str, content: str = "ok", **fields: Any) -> ToolMessage:
    return ToolMessage(id=f"x-{call_id}", tool_call_id=call_id, content=content, **fields)


def contents(snapshot: dict[str, Any]) -> list[str]:
    return [row["content"] for row in snapshot["messages"]]


def test_it_has_every_field_of_the_schema_in_its_order():
    serializer: AgentSerializer = STANDARD
    snapshot = serializer.serialize(told(user(1)))
    assert list(snapshot) == [
        *("schema", "agent_id", "parent_agent_id", "status", "step_count", "usage", "execution", "messages"),
        *("steps", "last_continuation", "state", "interrupts", "resume", "metadata", "dropped"),
    ]
    assert snapshot["schema"] == "runcast.snapshot.v1"
    assert snapshot["messages"] == [{"role": "user", "content": "question 1", "metadata": {"id": "u1"}}]
    assert snapshot["dropped"] == {"messages": 0, "steps": 0, "bytes": 0}
    assert snapshot["last_continuation"] is None


def test_times_are_utc():
    state = told(started_at=1_768_557_600_000, updated_at=1_768_557_900_123, cumulative_seconds=45.2)
    assert STANDARD.serialize(state)["execution"] == {
        "started_at": "2026-01-16T10:00:00Z",
        "updated_at": "2026-01-16T10:05:00.123Z",
        "cumulative_seconds": 45.2,
    }
    assert STANDARD.serialize(told(started_at=10**17))["execution"]["started_at"] is None


@pytest.mark.parametrize("config", [SlimConfig.minimal(), SlimConfig.standard(), SlimConfig.full()])
def test_every_preset_obeys_its_numbers(config: SlimConfig):
    messages = [
        message
        for n in range(200)
        for message in (user(n, f"{n} " + "x" * 9_000), calling(f"c{n}"), result(f"c{n}", "y" * 9_000))
    ]
    steps = [StepRecord(n + 1, "final") for n in range(200)]
    state = told(*messages, steps=steps, step_count=200, last_continuation={"should_continue": False})
    snapshot = SlimSerializer(replace(config, max_bytes=10_000_000)).serialize(state)
    kept = snapshot["messages"]
    assert config.max_messages - 3 <= len(kept) <= config.max_messages
    assert max(map(len, contents(snapshot))) <= config.max_content_length
    assert len(snapshot["steps"]) == (config.max_steps if config.include_steps else 0)
    assert snapshot["last_continuation"] == (
        {"should_continue": False} if config.include_continuation_trace else None
    )
    results = {row["content"] for row in kept if row["role"] == "tool"}
    assert (results == {"[tool result omitted]"}) is not config.include_tool_results
    assert snapshot["dropped"]["messages"] == 600 - len(kept)
    assert snapshot["dropped"]["steps"] == 200 - len(snapshot["steps"])


def test_the_most_recent_messages_stay():
    snapshot = STANDARD.serialize(told(*map(user, range(100))))
    assert contents(snapshot) == [f"question {n}" for n in range(50, 100)]


def test_step_numbers_stay_true():
    steps = [
        StepRecord(n, "final", usage=Usage(total=5), duration_ms=1.5, tool_calls=(("c", "f"),), name="s")
        for n in range(1, 61)
    ]
    snapshot = STANDARD.serialize(told(steps=steps, step_count=60))
    assert [row["step_number"] for row in snapshot["steps"]] == list(range(41, 61))
    assert snapshot["step_count"] == 60
    assert snapshot["steps"][0] == {
        "step_number": 41,
        "type": "final",
        "has_tool_calls": False,
        "errors": 0,
        "name": "s",
        "usage": {"prompt": 0, "completion": 0, "total": 5},
        "duration_ms": 1.5,
        "tool_calls": [{"id": "c", "name": "f"}],
    }


def test_content_is_cut_on_whole_characters_and_marked():
    serializer = SlimSerializer(SlimConfig(max_content_length=10, max_tool_result_length=5))
    snapshot = serializer.serialize(
        told(user(1, "👩‍👩‍👧‍👦" * 3), user(2, "x" * 10), calling("c"), result("c", "result"))
    )
    assert contents(snapshot) == ["👩‍👩‍👧‍👦...", "x" * 10, "", "re..."]
    marks = [row["metadata"].get("original_length") for row in snapshot["messages"]]
    assert marks == [21, None, None, 6]
    tighter = SlimSerializer(SlimConfig(max_content_length=0)).serialize(told(user(1, "hello")))
    assert tighter["messages"][0] == {
        "role": "user",
        "content": "",
        "metadata": {"id": "u1", "original_length": 5},
    }


def test_a_huge_content_is_cut_without_looking_at_all_of_it():
    secret = "token=" + "s" * 20_000
    serializer = SlimSerializer(SlimConfig(max_content_length=40))
    snapshot = serializer.serialize(told(user(1, "a " + secret + " b" * 10_000_000)))
    assert contents(snapshot) == ["a token=[redacted]..."]
    assert snapshot["messages"][0]["metadata"]["original_length"] == 20_020_008


def test_a_call_and_its_result_stay_or_go_together():
    state = told(user(0), calling("a", "b"), result("a"), result("b"), user(1), calling("c"), result("c"))
    for limit, expected in {7: "uatt", 6: "u", 4: "uat", 3: "uat", 2: "at", 1: ""}.items():
        snapshot = SlimSerializer(SlimConfig(max_messages=limit)).serialize(state)
        shape = "".join(row["role"][0] for row in snapshot["messages"])
        assert shape.startswith(expected), (limit, shape)
        calls = {call["id"] for row in snapshot["messages"] for call in row["metadata"].get("tool_calls", ())}
        results = {row["metadata"]["tool_call_id"] for row in snapshot["messages"] if row["role"] == "tool"}
        assert calls == results


def test_one_unit_that_is_too_big_loses_its_oldest_calls():
    ids = [f"c{n}" for n in range(30)]
    state = told(calling(*ids, content="looking"), *map(result, ids))
    snapshot = SlimSerializer(SlimConfig(max_messages=4)).serialize(state)
    calls = [call["id"] for call in snapshot["messages"][0]["metadata"]["tool_calls"]]
    assert calls == ["c27", "c28", "c29"]
    assert [row["metadata"]["tool_call_id"] for row in snapshot["messages"][1:]] == calls
    alone = SlimSerializer(SlimConfig(max_messages=1)).serialize(state)
    assert alone["messages"] == [{"role": "assistant", "content": "looking", "metadata": {"id": "a-c0"}}]
    silent = SlimSerializer(SlimConfig(max_messages=1)).serialize(told(calling(*ids), *map(result, ids)))
    assert silent["messages"] == []


def test_a_result_whose_call_is_out_of_reach_is_left_out():
    snapshot = STANDARD.serialize(told(result("z"), user(1), result("y")))
    assert contents(snapshot) == ["question 1"]
    many = [result(f"r{n}") for n in range(2_000)]
    assert SlimSerializer(SlimConfig(max_messages=5)).serialize(told(*many))["messages"] == []


def test_a_snapshot_begins_with_a_user_if_there_is_one_in_reach():
    work = [message for n in range(40) for message in (calling(f"c{n}"), result(f"c{n}"))]
    snapshot = SlimSerializer(SlimConfig(max_messages=11)).serialize(told(user(0), user(1), *work))
    assert [row["role"] for row in snapshot["messages"]] == ["user", *["assistant", "tool"] * 5]
    assert snapshot["messages"][0]["metadata"]["id"] == "u1"
    without = SlimSerializer(SlimConfig(max_messages=4)).serialize(told(*work))
    assert [row["role"] for row in without["messages"]] == ["assistant", "tool"] * 2


def test_first_messages_can_be_pinned():
    first = (SystemMessage(id="s", content="be kind"), user(0))
    config = SlimConfig(max_messages=3, include_system=True, pin_first_system=True, pin_first_user=True)
    snapshot = SlimSerializer(config).serialize(told(*first, *map(user, range(1, 9))))
    assert contents(snapshot) == ["be kind", "question 0", "question 8"]
    few = SlimSerializer(replace(config, max_messages=1)).serialize(told(*first, user(1)))
    assert contents(few) == ["be kind"]
    whole = SlimSerializer(replace(config, max_messages=9)).serialize(told(*first, user(1)))
    assert contents(whole) == ["be kind", "question 0", "question 1"]


def test_a_message_whose_calls_cannot_fit_is_left_out_and_not_written():
    large = calling(*map(str, range(20_000)))
    pinned = SlimSerializer(SlimConfig(pin_first_user=True))
    assert contents(pinned.serialize(told(user(0), user(1), large))) == ["question 0"]
    snapshot = STANDARD.serialize(told(user(0), large, user(1)))
    assert contents(snapshot) == ["question 1"]
    assert snapshot["dropped"]["messages"] == 2


def test_systems_and_reasoning_stay_out_unless_asked_for():
    state = told(
        SystemMessage(id="s", content="be kind"),
        user(1),
        ReasoningMessage(id="r", content="hm", role="reasoning"),
    )
    assert contents(STANDARD.serialize(state)) == ["question 1"]
    config = SlimConfig(include_system=True, include_reasoning=True)
    assert contents(SlimSerializer(config).serialize(state)) == ["be kind", "question 1", "hm"]
    assert SlimSerializer(SlimConfig(max_messages=0)).serialize(state)["messages"] == []


def test_who_reads_arguments_knows_whether_they_are_whole():
    """A call may wait for its approval: it must not be run with less than what was approved."""
    secret = json.dumps({"password": "hunter2hunter2"})
    snapshot = STANDARD.serialize(
        told(calling("a"), result("a"), calling("b", arguments=secret), result("b"))
    )
    back = STANDARD.deserialize(snapshot)
    first, second = (it for it in back.history if isinstance(it, AssistantMessage))
    assert first.tool_calls is not None
    assert second.tool_calls is not None
    assert first.tool_calls[0].metadata is None
    assert second.tool_calls[0].metadata == {"runcast": {"arguments_changed": True}}
    assert STANDARD.serialize(back)["messages"] == snapshot["messages"]


def test_arguments_are_kept_cut_or_left_out():
    long = json.dumps({"query": "q" * 3_000, "n": 5})
    state = told(calling("a"), result("a"), calling("b", arguments=long), result("b"), calling("c", arguments="[" * 3_000), result("c"),
                 calling("d", arguments="x" * 200_000), result("d"))  # fmt: skip
    rows = [
        row["metadata"]["tool_calls"][0]
        for row in STANDARD.serialize(state)["messages"]
        if row["role"] == "assistant"
    ]
    assert rows[0] == {"id": "a", "name": "f", "arguments": '{"q": 1}'}
    assert json.loads(rows[1]["arguments"]) == {"query": "q" * 117 + "...", "n": 5}
    assert rows[1]["arguments_changed"] is True
    assert rows[2] == {"id": "c", "name": "f", "arguments_length": 3_000}
    kept = told(calling("k").model_copy(update={"tool_calls": [SIGNED]}), result("k"))
    assert STANDARD.serialize(kept)["messages"][0]["metadata"]["tool_calls"][0]["encrypted_value"] == "sig"
    back = STANDARD.deserialize(STANDARD.serialize(kept)).history[0]
    assert isinstance(back, AssistantMessage)
    assert back.tool_calls == [SIGNED]
    assert rows[3] == {"id": "d", "name": "f", "arguments_length": 200_000}
    many = json.dumps({f"k{n}": "v" * 100 for n in range(100)})
    assert (
        "arguments"
        not in STANDARD.serialize(told(calling("e", arguments=many)))["messages"][0]["metadata"][
            "tool_calls"
        ][0]
    )
    redacted = SlimSerializer(SlimConfig(redact_tool_args=True)).serialize(state)
    assert redacted["messages"][0]["metadata"]["tool_calls"] == [{"id": "a", "name": "f"}]


def test_parts_become_references():
    parts = [
        TextPart(text="see"),
        ImagePart(source=DataSource(value="QUJD" * 100 + "QQ==", mime_type="image/png")),
        DocumentPart(source=UrlSource(value="https://x.example/a.pdf?token=abcdefgh")),
        AudioPart(source=FileSource(value="file-123", mime_type="audio/wav")),
        ImagePart(source=UrlSource(value="data:image/png;base64,QUJD")),
    ]
    snapshot = STANDARD.serialize(told(user(1, parts)))
    assert contents(snapshot)[0].split("\n") == [
        "see",
        "[image, image/png, 301 bytes]",
        "[document, https://x.example/a.pdf?token=[redacted]]",
        "[audio, audio/wav, file-123]",
        "[image, 19 bytes]",
    ]
    assert snapshot["messages"][0]["metadata"]["parts"][0] == {
        "type": "image",
        "mime_type": "image/png",
        "size": 301,
    }
    assert "QUJD" not in json.dumps(snapshot)


def test_what_is_known_of_a_message_stands_in_its_metadata():
    noted = {"runcast": {"error": True, "tool_name": "named"}, "trace": "t-1", "id": "mine", "extra": 1}
    state = told(
        UserMessage(id="u", content="x", name="Ada", encrypted_value="enc", subagent_run_id="s"),
        calling("c"),
        result("c", metadata=noted),
        calling("d"),
        result("d", error="it broke"),
        UserMessage(id="v", content="y", metadata={"big": "z" * 5_000, "small": 1}),
    )
    rows = [row["metadata"] for row in STANDARD.serialize(state)["messages"]]
    assert rows[0] == {"id": "u", "name": "Ada", "subagent_run_id": "s", "encrypted_value": "enc"}
    assert rows[2] == {
        "id": "x-c", "tool_call_id": "c", "tool_name": "named", "error": True,
        "trace": "t-1", "extra": {"id": "mine", "extra": 1},
    }  # fmt: skip
    assert (rows[4]["tool_name"], rows[4]["error"]) == ("f", True)
    assert rows[5] == {"id": "v", "small": 1}


def test_a_state_that_does_not_fit_loses_whole_keys():
    config = SlimConfig(max_state_bytes=200)
    state = {"a": 1, "big": "x" * 500, "b": {"c": [1, 2]}, "password": "p"}
    snapshot = SlimSerializer(config).serialize(told(state=state))
    assert snapshot["state"] == {"a": 1, "b": {"c": [1, 2]}, "password": "[redacted]"}
    assert snapshot["dropped"]["state_keys"] == 1
    for small in (None, 0, [], "text", [1, {"x": float("inf")}]):
        kept = SlimSerializer(config).serialize(told(state=small))["state"]
        assert kept == ([1, {"x": None}] if isinstance(small, list) and small else small)
    text = SlimSerializer(config).serialize(told(state="x" * 900))
    assert "state" not in text
    assert text["dropped"]["state_keys"] == 1
    assert "state" not in SlimSerializer(SlimConfig(include_state=False)).serialize(told(state={"a": 1}))


def test_values_that_json_does_not_have_become_ones_that_it_has():
    state = {"t": (1, 2), "b": b"xyz", "n": 2**70, "o": Usage(), 5: "five", "s": "\ud83d"}
    kept = STANDARD.serialize(told(state=state))["state"]
    assert kept == {
        "t": [1, 2], "b": "[binary, 3 bytes]", "n": str(2**70),
        "o": "Usage(prompt=0, completion=0, total=0)", "5": "five", "s": "\ufffd",
    }  # fmt: skip
    crowded = SlimSerializer(SlimConfig(max_state_bytes=30)).serialize(
        told(state={"a": "x" * 19, "b": 1, "c": 2})
    )
    assert crowded["state"] == {"a": "x" * 19}
    deep = STANDARD.serialize(told(state=nested(random.Random(1), 5_000)))
    json.dumps(deep)


def test_interrupts_say_what_they_can():
    ask = Interrupt(id="i", reason="confirm", message="delete? password=hunter2xyz", response_schema={"properties": {"password": {"type": "string"}}}, metadata={"big": "x" * 30_000})  # fmt: skip
    huge = Interrupt(id="j", reason="confirm", message="m" * 50_000)
    hopeless = Interrupt(id="k" * 90_000, reason="confirm")
    snapshot = STANDARD.serialize(told(interrupts=[ask, huge, hopeless]))
    first, second = snapshot["interrupts"]
    assert first == {
        "id": "i", "reason": "confirm", "message": "delete? password=[redacted]",
        "responseSchema": {"properties": {"password": {"type": "string"}}},
    }  # fmt: skip
    assert second == {"id": "j", "reason": "confirm"}
    assert snapshot["dropped"]["interrupts"] == 1


def test_where_to_go_on_is_kept_with_the_calls_that_wait():
    state = told(
        user(1), calling("c"), run_id="r", thread_id="t", seq=62,
        framework={"checkpoint_id": "1ef"}, pending_tool_call_ids=("c", "gone"),
    )  # fmt: skip
    assert STANDARD.serialize(state)["resume"] == {
        "seq": 62, "run_id": "r", "thread_id": "t", "framework": {"checkpoint_id": "1ef"}, "pending_tool_call_ids": ["c"],
    }  # fmt: skip


def test_a_trace_has_the_words_of_the_schema_only():
    said = {"should_continue": True, "stop_reason": "steps " * 90, "resolved_by": 7, "evaluations": [1]}
    trace = SlimSerializer(SlimConfig.full()).serialize(told(last_continuation=said))["last_continuation"]
    assert trace["should_continue"] is True
    assert len(trace["stop_reason"]) == 200
    assert trace.keys() == {"should_continue", "stop_reason"}


# ---------------------------------------------------------------------- laws

CONFIGS = (
    SlimConfig.minimal(),
    SlimConfig.standard(),
    SlimConfig.full(),
    SlimConfig(max_bytes=4_096),
    SlimConfig(max_bytes=9_000, max_messages=200, max_content_length=100_000, max_state_bytes=100_000),
    SlimConfig(max_bytes=20_000, redact_tool_args=True, pin_first_user=True, include_system=True),
    SlimConfig(max_messages=3, max_content_length=7, max_steps=2),
)


def check(state: AgentState, config: SlimConfig) -> dict[str, Any]:
    """The laws that every snapshot keeps."""
    serializer = SlimSerializer(config)
    snapshot = serializer.serialize(state)
    assert weigh(snapshot) <= config.max_bytes
    assert len(snapshot["messages"]) <= config.max_messages
    assert len(snapshot["steps"]) <= config.max_steps
    calls: set[str] = set()
    for row in snapshot["messages"]:
        calls |= {call["id"] for call in row["metadata"].get("tool_calls", ())}
        assert row["role"] != "tool" or row["metadata"]["tool_call_id"] in calls
    again = serializer.serialize(serializer.deserialize(json.loads(json.dumps(snapshot))))
    assert again == snapshot
    assert serializer.serialize(state) == snapshot
    return snapshot


@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
def test_any_thread_fits_and_is_stable(config: SlimConfig):
    for seed in range(30):
        rng = random.Random(seed)
        events = Teller(rng, longest=rng.choice((100, 3_000, 20_000))).thread(rng.choice((1, 3, 12, 30)))
        check(AgentState.from_events(events, "agent"), config)


def hostile(rng: random.Random) -> AgentState:
    """Everything at once longer than it should be."""
    huge = prose(rng, 200_000)
    ids = [huge + str(n) for n in range(40)]
    return AgentState(
        agent_id=huge,
        parent_agent_id=huge,
        thread_id=huge,
        run_id=huge,
        status=huge,
        history=[
            UserMessage(id=huge, content=huge, name=huge, metadata={huge: huge, "k": "v"}),
            calling(*ids, arguments=json.dumps({"q": huge}), content=huge),
            *(result(each, huge) for each in ids),
        ],
        content_bytes=9_000_000,
        steps=[
            StepRecord(n, huge, huge, finish_reason=huge, tool_calls=tuple((each, huge) for each in ids))
            for n in range(90)
        ],
        last_continuation={"should_continue": True, "stop_reason": huge, "resolved_by": huge},
        interrupts=[Interrupt(id=f"i{n}", reason="r", message=huge[:3_000]) for n in range(90)],
        state={f"k{n}": nested(rng, 400) for n in range(90)} | {"huge": huge},
        metadata={f"k{n}": huge[:2_000] for n in range(9)} | {huge: 1},
        framework={f"k{n}": huge[:500] for n in range(90)},
        extra={"more": huge[:2_000], "schema": 1},
    )


@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
def test_a_thread_with_everything_too_long_fits(config: SlimConfig):
    for seed in range(2):
        check(hostile(random.Random(seed)), config)


def test_when_nothing_else_helps_all_but_the_frame_goes():
    tight = SlimConfig(max_bytes=4_096, max_messages=200, include_continuation_trace=True)
    ids = [f"{n}" + "\x00" * 99 for n in range(60)]
    asks = [Interrupt(id=f"{n}", reason="r" * 200) for n in range(30)]
    full = AgentState(
        agent_id="\x00" * 500, parent_agent_id="\x00" * 500, thread_id="\x00" * 500, run_id="\x00" * 500, status="\x00" * 500,
        history=[calling(*ids), *map(result, ids)], interrupts=asks, framework={"key": "\x00" * 60, "a": 1},
        last_continuation={"stop_reason": "\x00" * 300, "resolved_by": "\x00" * 300}, step_count=2**53 - 1,
    )  # fmt: skip
    snapshot = check(full, tight)
    assert (snapshot["messages"], snapshot["interrupts"], snapshot["last_continuation"]) == ([], [], None)
    assert snapshot["resume"]["framework"] == {}
    assert snapshot["dropped"]["interrupts"] == 30
    some = replace(
        full, agent_id="a", parent_agent_id=None, thread_id=None, status="x", last_continuation=None
    )
    assert 0 < len(check(some, tight)["interrupts"]) < 30


def test_ten_thousand_messages_and_fifty_megabytes_fit():
    rng = random.Random(7)
    long = prose(rng, 20_000)
    messages = [user(n, f"{n} {long}") for n in range(2_500)]
    more = [message for n in range(3_750) for message in (calling(f"c{n}"), result(f"c{n}", "x"))]
    state = told(*messages, *more, content_bytes=2_500 * len(long.encode()))
    snapshot = check(state, SlimConfig())
    assert snapshot["dropped"]["messages"] == 10_000 - len(snapshot["messages"])
    assert snapshot["dropped"]["bytes"] > 40_000_000
