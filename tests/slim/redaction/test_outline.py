"""Events whose outline is familiar are passed without a search: the shortcut never passes what the rules would change."""

from __future__ import annotations

import random
import re

import pytest
from ag_ui.core import (
    CustomEvent,
    Event,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
    ToolCallResultEvent,
)
from hypothesis import given
from hypothesis import strategies as st

from runcast.slim import DEFAULT_PATTERNS, Redactor
from runcast.slim.redaction.outline import KEPT, LONGEST, OUTLINE, Familiar, blurred
from runcast.slim.values.linear_regex import quick_finder
from runcast.slim.wire.codec import encode
from tests.conftest import share
from tests.slim.redaction.test_forms import EVERY


def outline(text: str) -> str:
    return text.encode().translate(OUTLINE).decode()


def told(text: str) -> list[Event]:
    """Events that hold it in each kind of place: a field, a key, a value of metadata, a result, a document."""
    return [
        ToolCallResultEvent(message_id="m", tool_call_id="c", content=text),
        CustomEvent(name="n", value={"text": [text]}),
        StepStartedEvent(step_name=text),
        StepStartedEvent(step_name="s", metadata={"runcast": {"node": text, "n": 1}}),
        StepStartedEvent(step_name="s", metadata={text: "x", "secret_key": 7, "list": [text]}),
    ]


def test_what_is_familiar_is_what_the_rules_leave_unchanged():
    redactor, pick = Redactor(), random.Random(3)
    for text in pick.sample(EVERY, share(len(EVERY) // 3)):
        letters = [pick.choice("0123456789abcdef") if one in "0123456789abcdef" else one for one in text]
        for cousin in (outline(text), "".join(letters), outline(text), "".join(letters), text):
            feed = redactor.stream().feed
            for event in told(cousin):
                assert list(feed(event, encode(event))) == [redactor.model(event)], cousin


def test_in_an_event_is_found_what_is_found_in_its_text():
    redactor = Redactor()
    broken = [
        "- name: DB_PASSWORD\n  tr0ub4dor",
        "pass\tTr0ub4dor&3",
        'voice:\n  "9fk2Lm7Qx1Zr8Tv3Wn5B"',
        "\f8\npw\nx9y8z7",
    ]
    assert all(redactor.text(text) != text for text in broken)
    for text in (*broken, *EVERY):
        event = ToolCallResultEvent(message_id="m", tool_call_id="c", content=text)
        assert redactor.event(event) == redactor.model(event)
        assert [*redactor.stream().feed(event, encode(event))] == [redactor.model(event)]


def test_a_secret_of_the_same_outline_is_found():
    redactor = Redactor()
    feed = redactor.stream().feed
    for path in ("/a/0d", "/b/1e", "/c/2f"):
        event = StepStartedEvent(step_name="s", metadata={"place": path})
        assert [*feed(event, encode(event))] == [event]
    assert encode(event).translate(OUTLINE) in redactor.familiar.outlines
    for text in ("deadbee", "0r01a"):
        for name in (text, "p" + text):
            event = StepStartedEvent(step_name="s", metadata={name: "x1y2z3"})
            for _ in range(4):
                assert [*feed(event, encode(event))] == [redactor.model(event)]
    harmless = [StepStartedEvent(step_name="s", metadata={"tok3n": "x1"}) for _ in range(4)]
    assert [kept for event in harmless for kept in feed(event, encode(event))] == harmless
    secret = StepStartedEvent(step_name="s", metadata={"token": "x1"})
    assert [*feed(secret, encode(secret))] == [redactor.model(secret)] != [secret]


PATTERNS = [form.hint for form in DEFAULT_PATTERNS]


@pytest.mark.parametrize("pattern", PATTERNS, ids=[form.name for form in DEFAULT_PATTERNS])
def test_the_outline_of_what_matches_matches(pattern: str):
    search, blurry = quick_finder([pattern]), quick_finder([blurred(pattern)])
    assert all(blurry(outline(text)) for text in EVERY if search(text))


@given(st.text("0189abefgzABFGZ-_:é", max_size=12))
def test_blurred_classes_counts_and_cases_match_every_outline(text: str):
    for pattern in (
        r"a[0-9]{1,2}", r"(?i:Beg[^a]|f1)", r"[^0-9g]z", r"(?:[g-z]|\d)_", r"[a-f]{2}", r"(?i:(?-i:Ag)E|[AZ]b)",
        r"\\u[0-9a-f]{4}|z8", r"[A-F]g", r"A(?i:[B-F])",
    ):  # fmt: skip
        if re.search(pattern, text):
            assert re.search(blurred(pattern), outline(text)), pattern


def test_a_redactor_with_rules_of_its_own_knows_no_outline_of_another():
    event = StepStartedEvent(step_name="s", metadata={"user": {"first": "abc"}})
    plain, own = Redactor(), Redactor(also=lambda text: text.replace("abc", "*"))
    for _ in range(4):
        assert [*plain.stream().feed(event, encode(event))] == [event]
    for _ in range(4):
        (changed,) = own.stream().feed(event, encode(event))
        assert isinstance(changed, StepStartedEvent)
        assert changed.metadata == {"user": {"first": "*"}}
    assert not own.familiar.outlines


def test_familiar_outlines_are_bounded():
    familiar = Familiar(["password"], ["zz"])
    for _ in range(3):
        familiar.learn(b"x" * (LONGEST + 1))
        familiar.learn(b"zz")
        familiar.learn(outline("my password").encode())
    assert not familiar.outlines
    for at in range(2 * KEPT + 10):
        for _ in range(2):
            familiar.learn(b"g" * (at % 600) + b"h" * (at // 600))
    assert 0 < len(familiar.outlines) <= KEPT


def test_an_assignment_counts_inside_a_string_alone():
    event = TextMessageStartEvent(message_id="lc_run--01a1ee63-6d56-7074-ac3f-d7480bcd4cf9", role="assistant")
    event = event.model_copy(
        update={"metadata": {"runcast.place": "answer:ad854cdd-7454-e2da-32a2-f1c04eaece9a#1"}}
    )
    redactor = Redactor()
    for _ in range(3):
        assert [*redactor.stream().feed(event, encode(event))] == [event]
    assert encode(event).translate(OUTLINE) in redactor.familiar.outlines


def test_a_harmless_delta_that_carries_something_passes_and_a_secret_beside_it_does_not():
    redactor = Redactor()
    for metadata, same in (({"usage": {"completion": 2}}, True), ({"token": "x1y2"}, False)):
        event = TextMessageContentEvent(message_id="m", delta="hello ", metadata=metadata)
        for data in (encode(event), None):
            (kept,) = redactor.stream().feed(event, data)
            assert (kept == event) is same
            assert "x1y2" not in str(kept)
