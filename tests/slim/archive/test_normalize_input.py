"""Inputs that do not repeat their history: what goes, what stays, and that the whole can be had back to the letter."""

from __future__ import annotations

import random
from typing import Any

import pytest
from ag_ui.core import ActivityMessage, Message, RunAgentInput, RunStartedEvent
from hypothesis import given, settings
from hypothesis import strategies as st

from runcast.slim import encode
from runcast.slim.archive.lineage import (
    NormalizedInput,
    denormalize_input,
    denormalize_started,
    input_messages,
    normalize_input,
    normalize_started,
)
from runcast.slim.errors import LineageError
from runcast.slim.folding.conversation import fold
from tests import shapes, streams
from tests.slim.scripts import FINISHED, STARTED, snapshot, text, user
from tests.slim.views import MESSAGES, events, plain


def said(*wire: dict[str, Any]) -> list[Message]:
    return MESSAGES.validate_python(list(wire))


def given_to(messages: list[Message], **more: Any) -> RunAgentInput:
    return RunAgentInput(thread_id="t", run_id="r2", messages=messages, **more)


def ids(normalized: NormalizedInput) -> list[str]:
    return [message.id for message in normalized.input.messages]


def there_and_back(whole: RunAgentInput, history: list[Message]) -> NormalizedInput:
    small = normalize_input(whole, history)
    again = denormalize_input(small, history)
    assert again == whole
    assert plain(again) == plain(whole)
    return small


def test_messages_the_history_holds_just_so_go():
    history = said(user("m1"), {"id": "m2", "role": "assistant", "content": "hello"})
    whole = given_to([*history, *said(user("m3", "new"))], state={"n": 1}, forwarded_props={"k": None})
    small = there_and_back(whole, history)
    assert ids(small) == ["m3"]
    assert small.order == ("m1", "m2", None)
    assert small.input.state == {"n": 1}


def test_an_input_with_nothing_to_leave_out_is_itself():
    whole = given_to(said(user("m3")))
    assert there_and_back(whole, said(user("m1"))).input is whole
    assert there_and_back(given_to([]), []).order == ()


def test_case_44_an_edited_message_stays():
    history = said(user("m1", "before"), user("m2", "same"))
    whole = given_to(said(user("m1", "after"), user("m2", "same")))
    assert ids(there_and_back(whole, history)) == ["m1"]


@pytest.mark.parametrize(("held", "sent"), [(1, 1.0), (1, True), (0, False), (None, 0), ("1", 1), ({}, [])])
def test_case_44_values_that_only_python_calls_equal_are_an_edit(held: Any, sent: Any):
    history = said({**user("m1"), "metadata": {"k": held}})
    whole = given_to(said({**user("m1"), "metadata": {"k": sent}}))
    assert ids(there_and_back(whole, history)) == ["m1"]


def test_case_45_a_message_that_was_deleted_and_sent_again_stays():
    stream = events(STARTED, *text("m1", "hi", role="user"), snapshot(user("m2")), FINISHED)
    history = fold(stream).messages
    assert [message.id for message in history] == ["m2"]
    assert ids(there_and_back(given_to(said(user("m1"), user("m2"))), history)) == ["m1"]


def test_case_46_the_order_is_kept_even_where_it_is_not_the_historys():
    history = said(user("a"), user("b"), user("c"))
    whole = given_to(said(user("c"), user("x", "1"), user("a"), user("x", "2"), user("a")))
    small = there_and_back(whole, history)
    assert small.order == ("c", None, "a", None, "a")


def test_case_47_activities_never_go_to_the_agent_and_are_never_taken_from_the_history():
    plan = {"id": "x1", "role": "activity", "activityType": "PLAN", "content": {}}
    history = said(user("m1"), plan)
    assert [message.id for message in input_messages(history)] == ["m1"]
    assert not any(isinstance(message, ActivityMessage) for message in input_messages(history))
    assert ids(there_and_back(given_to(history), history)) == [
        "x1"
    ]  # a client that sent one anyway has it back


def test_of_two_messages_with_one_id_the_history_means_the_first():
    history = said(user("m1", "one"), user("m1", "two"))
    assert ids(there_and_back(given_to(said(user("m1", "two"), user("m1", "one"))), history)) == ["m1"]


def test_half_a_character_is_no_obstacle():
    history = said(user("m1", "\ud83d"))
    assert ids(there_and_back(given_to(history), history)) == []


@pytest.mark.parametrize(
    "history", [[], [user("m1", "other")], [user("m2")]], ids=["empty", "edited", "another"]
)
def test_a_history_that_does_not_fit_is_refused(history: list[dict[str, Any]]):
    small = normalize_input(given_to(said(user("m1"), user("m9"))), said(user("m1")))
    with pytest.raises(LineageError, match="not the one the input was made small against"):
        denormalize_input(small, said(*history))


def test_an_input_that_lost_or_gained_a_message_is_refused():
    history = said(user("m1"))
    small = normalize_input(given_to(said(user("m1"), user("m2"))), history)
    for messages in ([], said(user("m2"), user("m3"))):
        broken = NormalizedInput(given_to(messages), small.order, small.digest)
        with pytest.raises(LineageError):
            denormalize_input(broken, history)


seeds = st.integers(min_value=0, max_value=2**32)


@settings(max_examples=300, deadline=None)
@given(seeds)
def test_case_43_the_whole_can_always_be_had_back(seed: int):
    rng = random.Random(seed)
    history = fold(streams.structured(rng)).messages
    sent = [rng.choice(history) for _ in range(rng.randint(0, 4)) if history]
    held = tuple(message.id for message in history[:3])
    sent += said(*shapes.messages(rng, ids=("a", "b", *held)))
    rng.shuffle(sent)
    whole = given_to(sent)
    small = there_and_back(whole, history)
    assert len(small.order) == len(sent)
    assert sum(each is None for each in small.order) == len(small.input.messages)
    started = RunStartedEvent(
        thread_id="t", run_id="r2", input=whole, metadata=rng.choice((None, {}, {"k": 1}))
    )
    assert plain(denormalize_started(normalize_started(started, history), history)) == plain(started)
    assert fold([normalize_started(started, history)]).runs == fold([started]).runs


def test_run_started_notes_in_its_metadata_what_went():
    history = said(user("m1"))
    started = RunStartedEvent(thread_id="t", run_id="r2", input=given_to(said(user("m1"), user("m2"))))
    small = normalize_started(started, history)
    assert small.input is not None
    assert [message.id for message in small.input.messages] == ["m2"]
    assert small.metadata is not None
    note = small.metadata["runcast.input"]
    assert note["whole"] is True
    assert started.metadata is None
    assert normalize_started(small, history) is small
    again = denormalize_started(RunStartedEvent.model_validate(plain(small)), history)
    assert plain(again) == plain(started)
    with pytest.raises(LineageError):
        denormalize_started(small, said(user("m0"), user("m1")))
    del note["whole"]
    note["order"] = ["m1", None]  # as an earlier release wrote it
    assert plain(denormalize_started(RunStartedEvent.model_validate(plain(small)), history)) == plain(started)


def test_an_input_without_its_whole_history_lists_what_went():
    history = said(user("m1"), user("m2"))
    started = RunStartedEvent(thread_id="t", run_id="r2", input=given_to(said(user("m2"), user("m3"))))
    small = normalize_started(started, history)
    assert small.metadata is not None
    assert small.metadata["runcast.input"]["order"] == ["m2", None]
    assert plain(denormalize_started(small, history)) == plain(started)


def test_the_note_of_an_input_that_repeats_its_history_does_not_grow_with_it():
    def noted(turns: int) -> int:
        history = said(*(user(f"m{n}") for n in range(turns)))
        given = given_to([*history, *said(user("new"))])
        return len(
            encode(normalize_started(RunStartedEvent(thread_id="t", run_id="r", input=given), history))
        )

    assert noted(2) == noted(200)


def test_run_started_without_anything_to_leave_out_is_itself():
    bare = RunStartedEvent(thread_id="t", run_id="r2", metadata={"k": 1})
    whole = RunStartedEvent(thread_id="t", run_id="r2", input=given_to(said(user("m2"))))
    for started in (bare, whole):
        assert normalize_started(started, said(user("m1"))) is started
        assert denormalize_started(started, said(user("m1"))) is started
