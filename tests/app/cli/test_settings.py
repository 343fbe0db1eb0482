"""Settings: arguments, then the environment, then the defaults."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from runcast.app.cli.settings import Settings


def test_arguments_win_over_the_environment_and_that_over_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().port == 8000
    monkeypatch.setenv("RUNCAST_PORT", "9000")
    monkeypatch.setenv("RUNCAST_CORS", "https://a.example, https://b.example")
    monkeypatch.setenv("RUNCAST_NOBODY_KNOWS", "x")
    assert (Settings().port, Settings(port=9001).port) == (9000, 9001)
    assert Settings().cors == ("https://a.example", "https://b.example")


@pytest.mark.parametrize(
    ("name", "value"), [("PORT", "x"), ("PORT", "70000"), ("PRESET", "loud"), ("MAX_RUNS", "0")]
)
def test_what_makes_no_sense_is_told_by_its_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"RUNCAST_{name}", value)
    with pytest.raises(ValidationError, match=name.lower()):
        Settings()
