"""How many secrets are found in realistic places, and how many harmless texts stay: the measure of the rules as a whole."""

from __future__ import annotations

import json

import pytest
from ag_ui.core import TextMessageContentEvent, TextMessageEndEvent

from runcast.slim import Redactor
from runcast.slim.redaction.secret_values import is_code, is_reference, is_schema_text, looks_generated
from tests.slim.redaction.forms import HARMLESS, SECRETS

REDACTOR = Redactor()
FOUND = 0.90  # of the lists in `forms.py`
MANGLED = 0.05

texts = pytest.mark.parametrize("text", [*(text.format(secret) for text, secret in SECRETS), *HARMLESS])


def test_nine_of_ten_secrets_are_found():
    missed = [text for text, secret in SECRETS if secret in REDACTOR.text(text.format(secret))]
    assert len(missed) <= (1 - FOUND) * len(SECRETS), missed


def test_hardly_a_harmless_text_is_mangled():
    mangled = {text: REDACTOR.text(text) for text in HARMLESS if REDACTOR.text(text) != text}
    assert len(mangled) <= MANGLED * len(HARMLESS), mangled


@texts
def test_one_character_at_a_time_leaves_what_the_whole_leaves(text: str):
    stream = REDACTOR.stream()
    events = [
        event for one in text for event in stream.feed(TextMessageContentEvent(message_id="m", delta=one))
    ]
    events += stream.feed(TextMessageEndEvent(message_id="m"))
    assert "".join(getattr(event, "delta", "") for event in events) == REDACTOR.text(text)


@texts
def test_what_was_redacted_is_a_fixed_point(text: str):
    once = REDACTOR.text(text)
    assert REDACTOR.text(once) == once


@texts
def test_json_that_holds_it_parses_as_before(text: str):
    for document in (json.dumps({"a": text, "n": 1}), json.dumps({"a": json.dumps([text]), "n": 1})):
        assert json.loads(REDACTOR.text(document)).keys() == {"a", "n"}


def test_a_key_without_its_end_line_swallows_no_more_than_its_body():
    document = json.dumps({"key": "-----BEGIN PRIVATE KEY-----\nMIIE", "next": [1, {"a": "b"}]})
    redacted = json.loads(REDACTOR.text(document))
    assert redacted["next"] == [1, {"a": "b"}]
    assert "MIIE" not in redacted["key"]


@pytest.mark.parametrize(
    "value", ["${API_KEY}", "$TOKEN", "<your token>", "********", "YOUR_API_KEY", "your-api-key-here"]
)
def test_a_reference_is_no_secret(value: str):
    assert is_reference(value)
    assert REDACTOR.value({"password": value}) == {"password": value}


@pytest.mark.parametrize("value", ["hunter2", "correct horse", "Tr0ub4dor&3", "$ecret1!", "abc"])
def test_a_password_is_no_reference_and_no_code(value: str):
    assert not is_reference(value)
    assert not is_code(value)
    assert REDACTOR.value({"password": value}) == {"password": "[redacted]"}


def test_a_schema_under_a_secrets_name_stays_and_a_value_does_not():
    schema = {"password": {"type": "string", "minLength": 8}}
    assert REDACTOR.value(schema) == schema
    assert is_schema_text('{"type":"string"}')
    assert not is_schema_text('{"user":"a"}')


@pytest.mark.parametrize(
    "held",
    [
        {"type": "oauth", "value": "hunter2"},
        {"type": "string", "value": "hunter2"},
        {"type": "hunter2"},
        {"description": "hunter2"},
        {"type": "string", "default": "hunter2"},
        {"user": "u", "type": "string", "n": ["hunter2"]},
    ],
)
def test_a_kind_beside_a_value_makes_no_schema_of_it(held: dict[str, object]):
    value = {"credentials": held}
    assert "hunter2" not in json.dumps(REDACTOR.value(value))
    assert "hunter2" not in REDACTOR.text(json.dumps(value))


def test_an_object_under_a_secrets_name_is_replaced():
    assert REDACTOR.value({"credentials": {"user": "a"}}) == {"credentials": {"user": "[redacted]"}}


def test_a_weak_name_needs_a_value_that_looks_generated():
    assert REDACTOR.value({"primary_key": "customer", "pin": "1234", "otp": "top"}) == {
        "primary_key": "customer",
        "pin": "[redacted]",
        "otp": "top",
    }
    assert looks_generated("a1b2c3d4e5f6g7h8")
    assert not looks_generated("550e8400-e29b-41d4-a716-446655440000")
    assert not looks_generated("created_at_the_end_of_it")
