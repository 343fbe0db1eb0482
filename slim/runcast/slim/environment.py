"""Settings from environment variables that are handed in: a prefix, and the setting's name in capitals.

Knows true and false, whole numbers and text. Does not know what a setting means, and reads no environment itself.
"""

from __future__ import annotations

from collections.abc import Mapping

_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off"})


def settings_in(
    env: Mapping[str, str], prefix: str, kinds: Mapping[str, str]
) -> dict[str, bool | int | str | None]:
    """The settings that `env` has under this prefix. `kinds` are annotations: `bool`, `int`, `int | None`, `str`.

    Raises ValueError with the variable's name for a value of another kind, and for an unknown setting.
    """
    given: dict[str, bool | int | str | None] = {}
    for name, text in env.items():
        if not name.startswith(prefix):
            continue
        setting = name.removeprefix(prefix).lower()
        if setting not in kinds:
            raise ValueError(f"{name}: unknown setting {setting!r}; known are: {', '.join(sorted(kinds))}")
        given[setting] = _parsed(name, text.strip(), kinds[setting])
    return given


def _parsed(name: str, text: str, kind: str) -> bool | int | str | None:
    if kind == "str":
        return text
    if kind == "bool":
        if text.lower() in _YES | _NO:
            return text.lower() in _YES
        raise ValueError(f"{name} is true or false, not {text!r}")
    if text.lower() in ("", "none") and kind != "int":
        return None
    if not text.isascii() or not text.isdecimal():
        raise ValueError(f"{name} is a whole number of 0 or more, not {text!r}")
    return int(text)
