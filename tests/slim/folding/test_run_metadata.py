"""Runcast's own metadata keys: one table, which writes, reads and the document agree with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import StepFinishedEvent

from runcast.slim.folding.run_metadata import (
    INPUT_KEY,
    KEYS,
    METADATA_KEY,
    PLACE_KEY,
    metadata_of,
    run_metadata,
)

DOCUMENT = Path(__file__).parents[3] / "docs" / "protocol.md"


def step(metadata: dict[str, Any] | None) -> StepFinishedEvent:
    return StepFinishedEvent(step_name="s", metadata=metadata)


def test_what_is_written_is_read_and_absent_values_are_left_out():
    written = run_metadata(step_number=3, finish_reason=None)
    assert written == {METADATA_KEY: {"step_number": 3}}
    assert metadata_of(step(written)) == {"step_number": 3}
    assert run_metadata(finish_reason=None) is None
    assert run_metadata(finish_reason=None, errors=0) == {METADATA_KEY: {"errors": 0}}


@pytest.mark.parametrize("metadata", [None, {}, {"other": 1}, {METADATA_KEY: None}, {METADATA_KEY: [1]}])
def test_foreign_metadata_reads_as_nothing(metadata: dict[str, Any] | None):
    assert metadata_of(step(metadata)) == {}


def test_a_key_outside_the_table_is_refused():
    with pytest.raises(ValueError, match=r"\['weather'\] are not in the table"):
        run_metadata(weather="fine", attempt=1)


def test_the_document_describes_every_key_and_no_other():
    text = DOCUMENT.read_text(encoding="utf-8")
    section = text.partition("### Runcast's own metadata")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert {key for row in rows for key in re.findall(r"`(\w+)`", row)} == KEYS
    assert f"`{PLACE_KEY}`" in section
    assert f"`{INPUT_KEY}`" in section
