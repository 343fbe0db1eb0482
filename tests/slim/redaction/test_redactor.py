"""Secrets go, wherever they stand in a text, a value, a message or an event; everything else stays as it was."""

from __future__ import annotations

import json
import random
import re
from itertools import chain
from typing import Any

import pytest
from ag_ui.core import (
    AssistantMessage,
    CustomEvent,
    DataSource,
    Event,
    FunctionCall,
    ImagePart,
    Interrupt,
    MessagesSnapshotEvent,
    RawEvent,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    StepStartedEvent,
    Tool,
    ToolCall,
    ToolCallResultEvent,
    ToolMessage,
    UserMessage,
)

from runcast.slim.redaction.patterns import CARD_NUMBER, DEFAULT_KEYS, DEFAULT_PATTERNS, EMAIL, SecretPattern
from runcast.slim.redaction.redactor import DEEPEST, Redactor
from runcast.slim.values.linear_regex import finder
from runcast.slim.wire.codec import UnknownEvent, encode
from tests.slim.planted import BY_FORM, HARMLESS, PASSWORD, PLANTED
from tests.slim.redaction import (
    columned_forms,
    general_forms,
    learned_forms,
    more_forms,
    newer_forms,
    wider_forms,
)
from tests.slim.redaction.forms import SECRETS

REDACTOR = Redactor()
NOBODY = object()  # a value that JSON does not have is somebody else's to judge


@pytest.mark.parametrize(("text", "secret"), PLANTED.values(), ids=PLANTED)
def test_a_secret_in_a_text_is_replaced(text: str, secret: str):
    redacted = REDACTOR.text(text)
    assert secret not in redacted
    assert "[redacted]" in redacted
    assert REDACTOR.text(redacted) == redacted


@pytest.mark.parametrize(
    "name", ["json", "json in json", "json thrice", "escaped quote", "number", "object", "nested object"]
)
def test_json_stays_json(name: str):
    redacted = json.loads(REDACTOR.text(PLANTED[name][0]))
    assert redacted.keys() == json.loads(PLANTED[name][0]).keys()


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_a_secret_stays(text: str):
    assert REDACTOR.text(text) == text


def test_a_text_that_ends_too_soon_is_taken_for_a_secret():
    assert REDACTOR.text('{"password": "hunt') == '{"password": "[redacted]'
    assert REDACTOR.text("-----BEGIN PRIVATE KEY-----\nMIIE") == "-----BEGIN PRIVATE KEY-----[redacted]"
    assert REDACTOR.text('"credentials": {"a": "b') == '"credentials": "[redacted]"'
    assert REDACTOR.text("\"secret\": {'a': 'it', b") == '"secret": "[redacted]"'
    overlapping = Redactor(patterns=("def ghi",))
    assert overlapping.text("password: abcdef ghi jkl") == "password: [redacted] jkl"
    assert REDACTOR.text('"cvv": 12') == '"cvv": "[redacted]"'


def test_values_are_found_by_the_names_of_their_keys():
    value = {
        "apiKey": "x",
        "Set-Cookie": ["a", ""],
        "credentials": {"user": "u", "n": 5, "on": True, "none": None, "deep": [{"a": "b"}]},
        "max_tokens": 5,
        "other": [1, "text", ("t",)],
        "when": NOBODY,
    }
    assert REDACTOR.value(value) == {
        "apiKey": "[redacted]",
        "Set-Cookie": ["[redacted]", ""],
        "credentials": {
            "user": "[redacted]",
            "n": "[redacted]",
            "on": True,
            "none": None,
            "deep": [{"a": "[redacted]"}],
        },
        "max_tokens": 5,
        "other": [1, "text", ("t",)],
        "when": NOBODY,
    }


def test_a_long_name_announces_by_its_end():
    name = "of_the_service_that_keeps_all_orders_" * 4 + "password"
    assert Redactor().value({name: "hunter2", f"password_{name[:-9]}": "kept"}) == {
        name: "[redacted]",
        f"password_{name[:-9]}": "kept",
    }


def test_a_short_number_is_a_secret_behind_the_names_of_short_numbers_alone():
    given = {"pin": "483920", "otp_code": "4839", "session": "483920", "signature": "4839"}
    assert Redactor().value(given) == given | {"pin": "[redacted]", "otp_code": "[redacted]"}


def test_a_value_without_secrets_is_the_same_object():
    value = {"a": [1, {"b": "text"}], "c": ("x",)}
    assert REDACTOR.value(value) is value


def test_a_secret_in_the_name_of_a_key_goes_too():
    assert REDACTOR.value({BY_FORM["openai"]: 1, 5: 2}) == {"sk-[redacted]": 1, 5: 2}


def test_what_is_nested_deeper_than_anyone_reads_is_replaced_whole():
    deep: Any = {"password": PASSWORD}
    for _ in range(3_000):
        deep = [deep]
    redacted = REDACTOR.value(deep)
    for _ in range(DEEPEST):
        redacted = redacted[0]
    assert redacted == "[redacted]"


def test_paths_name_places_with_wildcards():
    redactor = Redactor(paths=("/user/tax", "/accounts/*/iban", "/**/pin", "/list/0"))
    value = {
        "user": {"tax": "1", "name": "n"},
        "accounts": [{"iban": "a", "x": {"iban": "kept"}}, {"iban": {"deep": "b"}}],
        "a": {"b": {"pin": 4}},
        "pin": "p",
        "list": ["gone", "kept"],
        "tax": "kept",
    }
    assert redactor.value(value) == {
        "user": {"tax": "[redacted]", "name": "n"},
        "accounts": [{"iban": "[redacted]", "x": {"iban": "kept"}}, {"iban": {"deep": "[redacted]"}}],
        "a": {"b": {"pin": "[redacted]"}},
        "pin": "[redacted]",
        "list": ["[redacted]", "kept"],
        "tax": "kept",
    }
    assert redactor.value("1", path="/user/tax") == "[redacted]"
    delta = StateDeltaEvent.model_validate(
        {"delta": [{"op": "add", "path": "/user", "value": {"tax": "9", "name": "n"}}]}
    )
    assert b'"value":{"tax":"[redacted]","name":"n"}' in encode(redactor.event(delta))


def test_a_path_can_hold_a_slash_and_must_be_a_pointer():
    assert Redactor(paths=("/a~1b/~0",)).value({"a/b": {"~": "x"}}) == {"a/b": {"~": "[redacted]"}}
    with pytest.raises(ValueError, match="start it with a slash"):
        Redactor(paths=("user",))


def test_cards_and_mail_addresses_are_looked_for_on_request():
    text = "card 4111 1111 1111 1111, not 4111 1111 1111 1112 or 0000 0000 0000 0000; ada@example.org"
    assert REDACTOR.text(text) == text
    redactor = Redactor(patterns=(*DEFAULT_PATTERNS, EMAIL, CARD_NUMBER))
    assert redactor.text(text) == (
        "card [redacted], not 4111 1111 1111 1112 or 0000 0000 0000 0000; [redacted]"
    )


def test_patterns_of_ones_own_run_on_the_linear_engine():
    redactor = Redactor(
        patterns=(r"CUST-\d{4,}", re.compile(r"order \s+ [a-z]+ # in words", re.X | re.I), r"(a+)+$")
    )
    assert redactor.text("CUST-123456, Order  abc; CUST-12") == "[redacted], [redacted]; CUST-12"
    assert redactor.text("b" + "a" * 50_000 + "!").startswith("b")


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("(?<=x)y", "look-around"),
        (r"(a)\1", "backreference"),
        ("a*", "matches the empty text"),
        ("(", "unclosed"),
    ],
)
def test_a_pattern_that_could_blow_up_is_refused_with_a_sentence(pattern: str, sentence: str):
    with pytest.raises(ValueError, match=sentence):
        Redactor(patterns=(pattern,))


def test_a_callable_has_the_last_word():
    redactor = Redactor(also=lambda text: text.replace("Ada", "A."))
    assert redactor.text("Ada's password: hunter2xyz") == "A.'s password: [redacted]"
    event = RunErrorEvent(message="Ada failed")
    assert redactor.event(event).message == "A. failed"  # type: ignore[union-attr]  # it is a RunErrorEvent


def test_nothing_to_look_for_finds_nothing():
    redactor = Redactor(keys=(), patterns=())
    assert redactor.text(f"password: {PASSWORD}") == f"password: {PASSWORD}"
    assert redactor.value({"password": PASSWORD}) == {"password": PASSWORD}


def test_the_replacement_and_the_keys_are_ones_own():
    redactor = Redactor(keys=("iban",), replace="***")
    assert redactor.text("IBAN=DE0012345, password: x1y2z3") == "IBAN=***, password: x1y2z3"
    assert redactor.text("IBAN=***") == "IBAN=***"
    with pytest.raises(ValueError, match="at least one letter or digit"):
        Redactor(keys=("--",))
    with pytest.raises(ValueError, match="window must be at least"):
        Redactor(window=100)
    with pytest.raises(ValueError, match="hold between"):
        Redactor(hold=5_000)


def test_a_replacement_that_is_there_already_stays_without_quotes_too():
    assert REDACTOR.text('{"password": [redacted]}') == '{"password": [redacted]}'
    assert Redactor(replace="0").text('{"pin": 0, "password": 1234}') == '{"pin": 0, "password": "0"}'


def test_a_name_without_a_value_ends_no_search():
    assert REDACTOR.text("password: , token=hunter22") == "password: , token=[redacted]"
    assert (
        REDACTOR.text('{"max_tokens": 4, "password": "hunter22"}')
        == '{"max_tokens": 4, "password": "[redacted]"}'
    )


def test_a_name_inside_a_value_announces_nothing():
    assert REDACTOR.text("api_key=xCookie: a=bcd") == "api_key=[redacted] a=bcd"


@pytest.mark.parametrize(
    "text",
    [
        'password = "${API_KEY}"',
        'password = "YOUR_API_KEY"',
        '{"password": "<token>"}',
        "password: then press",
        "the password: required for all",
    ],
)
def test_a_reference_in_quotes_and_a_word_of_a_sentence_stay(text: str):
    assert REDACTOR.text(text) == text


def test_a_value_ends_at_the_quote_with_as_many_escapes_as_the_first():
    text = '{"x": "{\\"password\\": \\"abc\\\\\\\\\\", \\"b\\": 1}"}'
    assert REDACTOR.text(text).endswith('\\", \\"b\\": 1}"}')
    assert "abc" not in REDACTOR.text(text)


def test_a_form_may_replace_all_that_it_matches():
    form = SecretPattern("ticket", form=r"T-[0-9]{3}", hint="T-", opening=r"T(?:-[0-9]{0,3})?\Z", onset="T")
    assert Redactor(keys=DEFAULT_KEYS, patterns=(form,)).text("T-123 T-12") == "[redacted] T-12"


SECRET_EVENTS: dict[str, Event] = {
    "error": RunErrorEvent(message=f"401 for password={PASSWORD}"),
    "result": ToolCallResultEvent(message_id="m", tool_call_id="c", content=json.dumps({"token": PASSWORD})),
    "state": StateSnapshotEvent(snapshot={"db": {"password": PASSWORD}}),
    "custom": CustomEvent(name="login", value={"password": PASSWORD}),
    "raw": RawEvent(event={"headers": {"authorization": PASSWORD}}),
    "raw copy": StepStartedEvent(step_name="s", raw_event={"api_key": PASSWORD}),
    "metadata": StepStartedEvent(step_name="s", metadata={"apiKey": PASSWORD}),
    "unknown field": StepStartedEvent.model_validate({"stepName": "s", "apiKey": PASSWORD, "other": 1}),
    "delta": StateDeltaEvent.model_validate(
        {"delta": [{"op": "add", "path": "/api_key", "value": PASSWORD}]}
    ),
    "delta below": StateDeltaEvent.model_validate(
        {"delta": [{"op": "add", "path": "/credentials/x", "value": [PASSWORD]}]}
    ),
    "messages": MessagesSnapshotEvent(
        messages=[
            UserMessage(id="u", content=f"my password: {PASSWORD}"),
            AssistantMessage(
                id="a",
                tool_calls=[
                    ToolCall(
                        id="c", function=FunctionCall(name="f", arguments=json.dumps({"secret": PASSWORD}))
                    )
                ],
            ),
            ToolMessage(id="t", tool_call_id="c", content="ok", error=f"token: {PASSWORD}"),
        ]
    ),
    "input": RunStartedEvent(
        thread_id="t",
        run_id="r",
        input=RunAgentInput(
            thread_id="t",
            run_id="r",
            state={"password": PASSWORD},
            messages=[UserMessage(id="u", content=f"pwd={PASSWORD}")],
            tools=[],
            context=[],
            forwarded_props={"token": PASSWORD},
        ),
    ),
    "interrupt": RunFinishedEvent(
        thread_id="t",
        run_id="r",
        outcome=RunFinishedInterruptOutcome(
            interrupts=[Interrupt(id="i", reason="ask", message=f"send password={PASSWORD}?")]
        ),
    ),
}


@pytest.mark.parametrize("event", SECRET_EVENTS.values(), ids=SECRET_EVENTS)
def test_an_event_loses_its_secrets_and_nothing_else(event: Event):
    before = encode(event)
    redacted = REDACTOR.event(event)
    assert PASSWORD.encode() not in encode(redacted)
    assert encode(event) == before
    assert type(redacted) is type(event)
    assert encode(redacted).count(b"[redacted]") == before.count(PASSWORD.encode())
    assert REDACTOR.event(redacted, encode(redacted)) == redacted


def test_an_unknown_event_loses_its_secrets_too():
    event = UnknownEvent.model_validate({"type": "NEW", "password": PASSWORD, "x": 1})
    assert encode(REDACTOR.event(event)) == b'{"type":"NEW","password":"[redacted]","x":1}'


def test_a_clean_event_is_the_same_object():
    event = StateSnapshotEvent(snapshot={"a": [1, 2]})
    assert REDACTOR.event(event) is event
    assert REDACTOR.event(event, encode(event)) is event
    assert Redactor(paths=("/zzz",)).event(event) is event


def test_ids_schemas_and_opaque_values_are_left_alone():
    key = BY_FORM["openai"]
    message = AssistantMessage(id=key, content="ok", encrypted_value=key)
    assert REDACTOR.model(message) is message
    image = UserMessage(id="u", content=[ImagePart(source=DataSource(value=key, mime_type="image/png"))])
    assert REDACTOR.model(image) is image
    schema = {"properties": {"password": {"type": "string", "default": key}}}
    tool = Tool(name="login", description="d", parameters=schema)
    assert REDACTOR.model(tool).parameters == {
        "properties": {"password": {"type": "string", "default": "sk-[redacted]"}}
    }


@pytest.mark.parametrize(
    "redactor",
    [Redactor(), Redactor(patterns=(*DEFAULT_PATTERNS, EMAIL)), Redactor(keys=("ticket",), patterns=())],
)
def test_the_glimpse_passes_nothing_by_that_a_look_would_find(redactor: Redactor):
    words = (
        *DEFAULT_KEYS,
        *("ticket", "ticket", "ticket"),
        "number",
        "key",
        "\N{LATIN SMALL LETTER LONG S}ecret",
        "ba\N{LATIN SMALL LETTER LONG S}ic",
    )
    heads = [
        "sk-",
        "ghp_",
        "xoxb-",
        "AKIA",
        "eyJ",
        "SG.",
        "https://",
        "PRIVATE KEY",
        "Bearer ",
        "whsec_",
        "hf_",
        "a@b",
    ]
    rng = random.Random(8)
    spelt = [
        str.lower,
        str.upper,
        str.title,
        str.swapcase,
        lambda text: "".join(rng.choice((c, c.upper())) for c in text),
    ]
    found = 0
    for _ in range(12_000):
        word = rng.choice(spelt)(rng.choice(words).replace(" ", rng.choice(("_", "-", "", " ", "."))))
        inside = (word, word, rng.choice(heads), '"', ":", "=", "\\", " ", "x", "\n", "7")
        text = "".join(rng.choice(inside) for _ in range(rng.randrange(1, 12)))
        if redactor.scanner.findings(text):
            assert redactor.suspects(text.encode()), text
            found += 1
    assert found > 5


@pytest.mark.parametrize(
    ("data", "needs"),
    [
        (b'{"url":"https://example.org/a?b=c"}', False),
        (b'{"url":"postgres://ada@example.org/a"}', False),
        (b'{"url":"postgres://ada:lovelace@example.org/a"}', True),
        (b'{"usage":{"inputTokens":3,"max_tokens":4,"finish_reason":"max_tokens"}}', False),
        (b'{"keyboard":"qwerty","monkeys":3,"cards":[1],"headers":["a"]}', False),
        (b'{"cardNumber":4111,"a":1}', True),
        (b'{"API-KEY":"x"}', True),
    ],
)
def test_events_without_any_secret_mostly_need_no_look(data: bytes, needs: bool):
    assert REDACTOR.suspects(data) is needs


@pytest.mark.parametrize("form", DEFAULT_PATTERNS, ids=lambda form: form.name)
def test_whatever_may_have_begun_shows_its_sign(form: SecretPattern):
    shows, begun = finder(form.sign), 0
    planted = [text for text, _ in PLANTED.values()] + [text.format(secret) for text, secret in SECRETS]
    listed = [
        *chain(
            *(
                each.secrets()
                for each in (
                    more_forms,
                    newer_forms,
                    wider_forms,
                    general_forms,
                    learned_forms,
                    columned_forms,
                )
            )
        )
    ]
    planted += [text for text, _ in listed if re.search(form.form, text)]
    for text in (before + text for text in planted for before in ("", "a ", "\\n", "x=", "a")):
        for end in range(len(text) + 1):
            if re.search(form.opening, text[:end]):
                assert shows(text[:end]), text[:end]
                begun += 1
    assert begun > 5
