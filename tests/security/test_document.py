"""SECURITY.md names a test for each line of defence; that the named ones exist is held by tests/house/test_documents.py."""

from __future__ import annotations

import re

from tests.house.tree import ROOT


def test_every_line_of_defence_names_a_test_by_its_function():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    table = text.partition("## Lines of defence")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (?!promise|---)(.+) \| (.+) \|$", table, re.MULTILINE)
    assert len(rows) > 20
    for promise, held in rows:
        assert re.fullmatch(r"`tests/\S+::test_\w+`(?:, `tests/\S+::test_\w+`)*", held), promise
