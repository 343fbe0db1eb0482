"""The ledger sees what it is there for: a scene that lost, doubled or disordered anything does not pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from ag_ui.core import AssistantMessage, MessagesSnapshotEvent, TextMessageContentEvent

from tests.broadcast.entries import Thread
from tests.reliability.counting import words
from tests.reliability.ledger import Ledger, Row, table, write

WHOLE = "0.1.0 0.1.1! 1.1.0 1.2.0 1.2.1! "  # node 1 was cut off once


def made_up(stored: str, *readers: str, promised: str = "") -> Ledger:
    ledger = Ledger("a scene")
    ledger.plan("t", 2, 2)
    ledger.promised("t", promised)
    for reader in readers:
        ledger.delivered("reader", "t", reader)
    ledger.stored("t", stored)
    return ledger


def test_what_a_run_took_back_does_not_stand() -> None:
    thread, kept = Thread(), AssistantMessage(id="a", content="0.1.0! ")
    said = [
        TextMessageContentEvent(message_id=id, delta=text)
        for id, text in (("a", "0.1.0! "), ("b", "1.1.0! "))
    ]
    again = TextMessageContentEvent(message_id="c", delta="1.2.0! ")
    entries = [thread.entry(each) for each in (*said, MessagesSnapshotEvent(messages=[kept]), again)]
    assert words(entries[:2]) == "0.1.0! 1.1.0! "
    assert words(entries) == "0.1.0! 1.2.0! "


def test_a_whole_run_with_a_cut_is_clean() -> None:
    row = made_up(WHOLE, WHOLE, promised="0.1.0").settle()
    assert (row.planned, row.acknowledged, row.delivered, row.lost, row.doubled) == (4, 5, 5, 0, 0)


@pytest.mark.parametrize(
    ("stored", "reader", "promised", "what"),
    [
        (WHOLE, WHOLE.replace("1.1.0 ", ""), "", "lost 1"),
        (WHOLE, WHOLE + "1.2.1! ", "", "doubled 1"),
        (WHOLE, WHOLE.replace("0.1.0 0.1.1!", "0.1.1! 0.1.0"), "", "another order"),
        (WHOLE, WHOLE, "1.3.0", "lost 1"),
        (WHOLE.replace("1.2.1! ", ""), WHOLE, "", "only nodes"),
        (WHOLE + "1.2.1! ", "", "", "doubled"),
        (WHOLE + "0.2.0 ", "", "", "told again after its end"),
        ("0.1.0 0.1.1! 1.1.1! ", "", "", "says 1.1.1"),
        ("1.1.0 1.1.1! 0.1.0 0.1.1! ", "", "", "was to come"),
        ("0.1.0! 1.1.0 1.1.1! ", "", "", "ended after 1"),
    ],
)
def test_whatever_is_not_whole_is_told(stored: str, reader: str, promised: str, what: str) -> None:
    ledger = made_up(stored, *[reader] * bool(reader), promised=promised)
    with pytest.raises(AssertionError, match=what):
        ledger.settle()


def test_what_ended_may_not_begin_again(tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    ledger = made_up(WHOLE)
    effects.write_text("t 0 1\nt 1 1\nt 1 2\n")
    ledger.effects(effects)
    ledger.settle()
    effects.write_text("t 0 1\nt 0 2\n")
    ledger.effects(effects)
    with pytest.raises(AssertionError, match="node 0 began again after its end"):
        ledger.settle()


def test_all_scenes_make_a_table(tmp_path: Path) -> None:
    rows = [Row("one", 1_000, 900, 3_000), Row("another", notes={"seconds": 1.5})]
    assert "1,000" in table(rows)[1]
    write(rows, tmp_path / "results" / "chaos.json")
    assert '"scene": "another"' in (tmp_path / "results" / "chaos.json").read_text()
