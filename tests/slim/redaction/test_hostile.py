"""No text, however made, keeps the redactor busy: what it costs grows as its length does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from ag_ui.core import TextMessageContentEvent

from runcast.slim.redaction.patterns import CARD_NUMBER, DEFAULT_PATTERNS, EMAIL
from runcast.slim.redaction.redactor import Redactor
from runcast.slim.values.linear_regex import Linear, quick_finder, searchable
from tests.slim.redaction.forms import COSTLIEST, usual

REDACTOR = Redactor(patterns=(*DEFAULT_PATTERNS, EMAIL, CARD_NUMBER, r"(x+x+)+y"))
NARROW = Redactor(window=2_048)
UNITS = (
    *(
        "-eyJ",
        "-eyJ" * 200 + "." + "a" * 8_000,
        "-sk-",
        "bearer ",
        "bearer",
        "basic a",
        "-----BEGIN PRIVATE KEY----",
    ),
    *("://", "://a:", "a@", "a@b.c.", "4", "4 1 ", "password", '"password"', "password:", '"password":"'),
    *(
        '"password":{',
        '"password":[',
        '"password":"\\\\\\\\',
        "password    :    ",
        "a",
        '"',
        "\\",
        "cookie: a; ",
    ),
    *("password=null ", "password:abcd ", "token=secret=", "a:b=c:"),
    *("SG.aaaaaaaaaaaaaaaaaaaa.", '\\"token\\":\\"', '"secret":"a\n', "x", "\ud83d", "漢"),
)
FOUR_TIMES = 10  # the cost of a text four times as long: 4 where it is linear, 16 where it is quadratic


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: repr(unit[:24]))
def test_four_times_as_much_of_it_costs_about_four_times_as_much(unit: str):
    def streamed(text: str) -> None:
        stream = NARROW.stream()
        for at in range(0, len(text), 16):
            stream.feed(TextMessageContentEvent(message_id="m", delta=text[at : at + 16]))
        stream.close()

    def cost(work: Callable[[str], object], length: int) -> float:
        text, spent = (unit * (length // len(unit) + 1))[:length], []
        for _ in range(2):
            began = time.process_time()
            work(text)
            spent.append(time.process_time() - began)
        return min(spent)

    assert cost(REDACTOR.text, 400_000) < FOUR_TIMES * cost(REDACTOR.text, 100_000)
    assert cost(streamed, 48_000) < FOUR_TIMES * cost(streamed, 12_000)


def test_a_name_that_is_part_of_another_names_value_is_found_again():
    text = "token: api_key-client secret: hunter22"
    assert REDACTOR.text(text) == "token: [redacted] secret: [redacted]"


def test_a_text_that_names_a_secret_costs_about_as_much_as_one_that_does_not():
    prose = "The quick brown fox jumps over the lazy dog, and writes a report of it. " * 14_000
    spent: list[float] = []
    for text in (prose + "tok = none", prose + "token = hunter22"):
        began = time.process_time()
        for _ in range(5):
            REDACTOR.text(text)
        spent.append(time.process_time() - began)
    assert spent[1] < 20 * spent[0] + 0.2  # it was 170 times as much


def test_the_worst_text_costs_little_more_than_a_usual_one():
    """Five times as much a character, as `make bench` shows; the bound is wider, because a test asserts no time."""
    redactor, length = Redactor(), 20_000

    def cost(text: str) -> float:
        spent = []
        for _ in range(3):
            began = time.process_time()
            redactor.text(text)
            spent.append(time.process_time() - began)
        return min(spent)

    most = 40 * cost(usual(length))
    for unit in COSTLIEST:
        assert cost((unit * (length // len(unit) + 1))[:length]) < most, unit


def test_a_long_search_lets_other_threads_run():
    """A search of `re` holds Python's lock to its end, and with it every run of the process."""
    turns, over = 0, threading.Event()

    def count() -> None:
        nonlocal turns
        while not over.wait(0.001):
            turns += 1

    beside = threading.Thread(target=count)
    beside.start()
    REDACTOR.text("--token " * 130_000)
    over.set()
    beside.join()
    assert turns > 8


def test_a_hold_that_grows_by_single_characters_is_not_scanned_at_each():
    redactor, scans = Redactor(), 0
    growing = redactor.scanner.growing

    def counted(text: str, since: int, unsure: int) -> object:
        nonlocal scans
        scans += 1
        return growing(text, since, unsure)

    redactor.scanner.growing = counted  # type: ignore[method-assign, assignment]  # counted, and the same
    stream = redactor.stream()
    for character in "the password: " + "=key-]secret" * 50:
        stream.feed(TextMessageContentEvent(message_id="m", delta=character))
    assert scans < 300  # of 614 characters


def test_linear_patterns_find_what_stands_where():
    assert list(Linear("b+").spans("abbbab")) == [(1, 4), (5, 6)]
    assert list(Linear("q").spans("x" * 5_000 + "q" + "x" * 5_000)) == [(5_000, 5_001)]
    straddling = "x" * 4_090 + "secret-12345" + "x" * 100
    assert list(Linear(r"secret-\d+").spans(straddling)) == [(4_090, 4_102)]
    assert list(Linear("a").spans("")) == []


def test_a_quick_finder_knows_the_case_of_ascii_and_asks_others_only_where_they_may_stand():
    found = quick_finder(["(?i:secret)", "(?i:пароль)"])
    for text in ("a SECRET", b"a Secret", "ПАРОЛЬ", "Пароль".encode()):
        assert found(text)
    assert not found("a \N{LATIN SMALL LETTER LONG S}ecret")
    assert not quick_finder([])("anything")


def test_searchable_text_has_as_many_characters():
    assert searchable("a\ud83db漢") == "a?b漢"
    assert searchable("漢") == "漢"


def test_what_begins_inside_a_secret_holds_all_of_the_secret():
    text = "password=x1y://a,b"
    found, wait, _ = Redactor().scanner.growing(text, 0, len(text))
    assert (not found, wait) == (True, len("password="))
