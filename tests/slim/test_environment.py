"""Settings from variables: what is read, and what is refused by its name."""

from __future__ import annotations

import pytest

from runcast.slim.environment import settings_in

KINDS = {"flag": "bool", "size": "int", "limit": "int | None", "name": "str"}


def test_values_are_read_by_their_kind():
    env = {"X_FLAG": " On ", "X_SIZE": "7", "X_LIMIT": "None", "X_NAME": " loud ", "Y_SIZE": "many"}
    assert settings_in(env, "X_", KINDS) == {"flag": True, "size": 7, "limit": None, "name": "loud"}
    assert settings_in({"X_LIMIT": "3", "X_FLAG": "0"}, "X_", KINDS) == {"limit": 3, "flag": False}


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("FLAG", "2", "X_FLAG is true or false, not '2'"),
        ("SIZE", "²", "X_SIZE is a whole number of 0 or more, not '²'"),
        ("SIZE", "none", "X_SIZE is a whole number"),
        ("COLOUR", "red", "X_COLOUR: unknown setting 'colour'; known are: flag, limit, name, size"),
    ],
)
def test_a_value_of_another_kind_is_refused(name: str, text: str, sentence: str):
    with pytest.raises(ValueError, match=sentence):
        settings_in({f"X_{name}": text}, "X_", KINDS)
