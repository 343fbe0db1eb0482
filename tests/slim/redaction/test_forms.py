"""How many secrets are found in realistic places, and how many harmless texts stay: the measure of the rules as a whole."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from itertools import chain, pairwise

import pytest
from ag_ui.core import TextMessageContentEvent, TextMessageEndEvent
from hypothesis import given, settings
from hypothesis import strategies as st

from runcast.slim import Redactor
from runcast.slim.redaction.secret_values import (
    is_harmless,
    is_reference,
    is_schema_text,
    looks_generated,
    looks_random,
)
from tests.conftest import share
from tests.slim.redaction import (
    columned_forms,
    general_forms,
    learned_forms,
    more_forms,
    newer_forms,
    staged_forms,
    wider_forms,
)
from tests.slim.redaction.forms import HARMLESS, SECRETS

REDACTOR = Redactor()
FOUND = 0.90  # of the lists in `forms.py`
MANGLED = 0.05

SECRET = {
    "first": [(text.format(secret), secret) for text, secret in SECRETS],
    "second": more_forms.secrets(),
    "third": newer_forms.secrets(),
    "fourth": wider_forms.secrets(),
    "general": general_forms.secrets(),
    "learned": learned_forms.secrets(),
    "staged": staged_forms.secrets(),
    "columned": columned_forms.secrets(),
}
HARMLESS_TEXTS = {
    "first": HARMLESS,
    "second": more_forms.lines_of(more_forms.HARMLESS),
    "third": newer_forms.harmless(),
    "fourth": wider_forms.harmless(),
    "general": general_forms.harmless(),
    "learned": learned_forms.harmless(),
    "staged": staged_forms.harmless(),
    "columned": columned_forms.harmless(),
}
EVERY = [*(text for each in SECRET.values() for text, _ in each), *chain(*HARMLESS_TEXTS.values())]
texts = pytest.mark.parametrize("text", EVERY)


@pytest.mark.parametrize("name", SECRET)
def test_nine_of_ten_secrets_are_found(name: str):
    missed = [text for text, secret in SECRET[name] if secret in REDACTOR.text(text)]
    assert len(missed) <= (1 - FOUND) * len(SECRET[name]), missed


@pytest.mark.parametrize("name", HARMLESS_TEXTS)
def test_hardly_a_harmless_text_is_mangled(name: str):
    mangled = {text: REDACTOR.text(text) for text in HARMLESS_TEXTS[name] if REDACTOR.text(text) != text}
    assert len(mangled) <= MANGLED * len(HARMLESS_TEXTS[name]), mangled


def streamed(pieces: Iterable[str]) -> str:
    stream = REDACTOR.stream()
    events = [
        event for one in pieces for event in stream.feed(TextMessageContentEvent(message_id="m", delta=one))
    ]
    events += stream.feed(TextMessageEndEvent(message_id="m"))
    return "".join(getattr(event, "delta", "") for event in events)


@texts
def test_in_pieces_of_any_size_it_leaves_what_the_whole_leaves(text: str):
    pick = random.Random(text)
    cuts = sorted(pick.choices(range(len(text) + 1), k=len(text) // 4))
    for pieces in (text, [text[start:end] for start, end in pairwise([0, *cuts, len(text)]) if start < end]):
        assert streamed(pieces) == REDACTOR.text(text)


def test_a_word_that_introduces_a_secret_may_be_split_anywhere():
    for text in (
        "my SECRET is hunter2222",
        "x TOKEN a1b2c3d4e5f6a1b2c3d4e5f6",
        "the KEY a1b2c3d4e5f6a1b2c3d4e5f6",
    ):
        for at in range(len(text)):
            for end in range(at + 1, len(text)):
                assert streamed([text[:at], text[at:end], text[end:]]) == REDACTOR.text(text)


@pytest.mark.parametrize(
    "document",
    [
        {"a": "password=", "n": 1},
        {"a": "password=", "b": [True, None, -1.5e3], "c": ""},
        {"a": ["token =", "x"], "b": "y"},
        {"a": "password="},
        ["password:", {"b": "c"}],
        {"a": json.dumps({"a": "password=", "n": 1}), "b": 2},
    ],
)
def test_a_name_and_its_operator_at_the_end_of_a_string_swallow_no_json(document: object):
    for space in (None, 1):
        text = json.dumps(document, indent=space)
        assert json.loads(REDACTOR.text(text)) == document
        assert streamed(text) == text
    for text in ('x = {"password": ",}"}', "password=',};'"):
        assert streamed(text) == REDACTOR.text(text)
    assert REDACTOR.text('{"password": ",}"}') == '{"password": "[redacted]"}'
    assert REDACTOR.text('{"password":}') == '{"password":}'


@pytest.mark.parametrize(
    "broken", ['{"credentials": {', '{"credentials": {"a": ["b', '{"auth": {"token": [1, {']
)
def test_an_object_that_breaks_off_inside_a_string_swallows_nothing_behind_it(broken: str):
    document = {"a": f"log: {broken}", "b": [1, {"c": "d"}]}
    for text in (json.dumps(document), json.dumps({"x": json.dumps(document), "y": "z"})):
        redacted = json.loads(REDACTOR.text(text))
        assert redacted.get("y", "z") == "z"
        inner = json.loads(redacted["x"]) if "x" in redacted else redacted
        assert inner["b"] == document["b"]
        assert inner["a"].startswith("log: {")
        assert streamed(text) == REDACTOR.text(text)


def test_a_pair_of_name_and_value_is_a_secret_by_its_name():
    for name in ("name", "key"):
        given = {name: "DB_PASSWORD", "value": "hunter2"}
        assert REDACTOR.value([given]) == [{**given, "value": "[redacted]"}]
        assert REDACTOR.value({name: "color", "value": "red"}) == {name: "color", "value": "red"}


@texts
def test_what_was_redacted_is_a_fixed_point(text: str):
    once = REDACTOR.text(text)
    assert REDACTOR.text(once) == once


AROUND = (
    "{}",
    "say {} and go on",
    '"{}"',
    "x = '{}'",
    "- {}\n- {}",
    "({})",
    "`{}`",
    '{{"a": "{}"}}',
    "<p>{}</p>",
)


@given(
    st.sampled_from(EVERY),
    st.sampled_from(EVERY),
    st.sampled_from(AROUND),
    st.sampled_from((" ", "\n", ", ", "; ")),
)
@settings(max_examples=share(600), deadline=None, derandomize=True)
def test_in_any_place_and_beside_another_it_is_a_fixed_point_too(
    one: str, other: str, around: str, between: str
):
    once = REDACTOR.text(around.replace("{}", one) + between + around.replace("{}", other))
    assert REDACTOR.text(once) == once


def test_what_touches_a_secret_is_one_with_it_and_a_key_in_a_string_ends_with_the_string():
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIE5h2k/9Az+0\n" * 9 + "-----END PRIVATE KEY-----"
    for text, left in (
        (f'password = "{key}"; next', 'password = "[redacted]"; next'),
        (f'password = "{key[:60]}', 'password = "[redacted]'),
        (f'password = "{key}', 'password = "[redacted]'),
        ("cookies: \n'\"", "cookies: \n'\""),
    ):
        assert (REDACTOR.text(text), streamed(text), REDACTOR.text(left)) == (left, left, left)


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


@pytest.mark.parametrize(
    "value", ["hunter2", "hunter2...", "correct horse", "Tr0ub4dor&3", "$ecret1!", "$(1x", "abc"]
)
def test_a_password_is_no_reference_and_no_code(value: str):
    assert not is_reference(value)
    assert not is_harmless(value)
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


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("quirk_key", "6f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0", True),
        ("cache_key", "6f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0", False),
        ("public_key", "UyhzI8JdNHlV3LyWJRofKMNI6VV0RJRm", False),
        ("userkey", "UyhzI8JdNHlV3LyWJRofKMNI6VV0RJRm", True),
        ("session", "6f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0", False),
        ("psk", "Passw0rd1", True),
        ("psk", "WPA2", False),
        ("MYSQLPASS", "hunter2", True),
        ("compass", "hunter2", False),
        ("password_prod", "hunter2", True),
        ("password_2", "hunter2", True),
        ("token_text", "a word", False),
        ("token_value", "9fk2Lm7Qx1Zr8Tv3Wn5B", True),
        ("auth", "6f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0", True),
    ],
)
def test_what_a_key_is_of_decides(name: str, value: str, secret: bool):
    assert (REDACTOR.value({name: value}) != {name: value}) is secret
    assert (REDACTOR.text(f"{name}={value}") != f"{name}={value}") is secret


def test_names_of_ones_own_have_no_weak_ones():
    redactor = Redactor(keys=("ticket",))
    assert redactor.text("ticket=x1y2 userkey=x2y3") == "ticket=[redacted] userkey=x2y3"
    assert redactor.value({"userkey": "UyhzI8JdNHlV3LyWJRofKMNI6VV0RJRm"})["userkey"].startswith("Uyhz")


@pytest.mark.parametrize(
    ("value", "random"),
    [
        ("9fk2Lm7Qx1Zr8Tv3Wn5B", True),
        ("3f786850e387550fdab836ed7e6dc881de23001b", False),
        ("6f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0", False),
        ("created_at_the_end_of_2024", False),
        ("claude-3-5-sonnet-20241022", False),
    ],
)
def test_random_characters_change_between_letters_and_digits(value: str, random: bool):
    assert looks_random(value) is random
    assert (REDACTOR.text(f'quirk = "{value}"') != f'quirk = "{value}"') is random


def test_an_id_stays_whatever_random_characters_it_has():
    for prefix in ("call_", "msg_", "toolu_", "chatcmpl-", "user_", "file-"):
        text = f"{prefix}9fk2Lm7Qx1Zr8Tv3Wn5B4c6D"
        assert REDACTOR.text(text) == text
        assert REDACTOR.text(f'"x": "{text}"') == f'"x": "{text}"'
    assert REDACTOR.text("qzx_9fk2Lm7Qx1Zr8Tv3Wn5B4c6D") == "qzx_[redacted]"


def test_a_name_on_the_line_below_is_no_value():
    assert REDACTOR.text("credentials:\n  user: joe\n  password: hunter2") == (
        "credentials:\n  user: joe\n  password: [redacted]"
    )


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("sk_live_abcdefghij1234567890-REST99tail_x", "sk_live_[redacted]"),
        ("shpat_0123456789ABCDEF0123456789ABCDEF", "shpat_[redacted]"),
        ("minio.rootsecretkey: Zz81kQpL2w", "minio.rootsecretkey: [redacted]"),
        ("app.storageaccesskey=Zz81kQpL2w", "app.storageaccesskey=[redacted]"),
        ("if token == expected:", "if token == expected:"),
        ("if token == exp3cted", "if token == [redacted]"),
    ],
)
def test_the_whole_of_a_secret_goes_and_a_comparison_stays(text: str, redacted: str):
    assert REDACTOR.text(text) == redacted


def test_a_form_that_begins_inside_another_secret_waits_with_it():
    text = "password=ab.redis-cli -a hunter2222zz ping"
    for at in range(len(text)):
        assert streamed([text[:at], text[at:]]) == REDACTOR.text(text)
