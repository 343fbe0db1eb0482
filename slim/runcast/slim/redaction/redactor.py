"""Removes secrets from events, values and texts, before anything is written or sent.

A secret is known by the name of its key, by its form, by its place in a JSON document (`paths`), or by a callable of the
user. Under a secret's name the structure stays and every leaf is replaced, so that JSON Patches to it still apply. Knows
the models of the protocol: ids, types and opaque provider values stay unchanged. A text that arrives in pieces needs
`redactor.stream()`: one piece alone may look harmless.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel

from runcast.slim.redaction.event_parts import EXEMPT_FIELDS
from runcast.slim.redaction.key_names import DEFAULT_KEYS, WEAK_KEYS, KeyNames
from runcast.slim.redaction.outline import Familiar
from runcast.slim.redaction.paths import Paths
from runcast.slim.redaction.patterns import DEFAULT_PATTERNS
from runcast.slim.redaction.scanner import Scanner
from runcast.slim.redaction.secret_pattern import SecretPattern
from runcast.slim.redaction.secret_values import is_reference, is_schema
from runcast.slim.redaction.stream_redactor import REMEMBERED, StreamRedactor
from runcast.slim.redaction.value_extent import Finding
from runcast.slim.values.linear_regex import Linear
from runcast.slim.values.type_guards import as_mapping
from runcast.slim.wire.codec import AnyEvent, encode

SHORT = 40  # the most characters of a text that is remembered
DEEPEST = 200  # deeper nesting is replaced whole, so recursion is bounded

_SCHEMAS = frozenset({"parameters", "response_schema"})  # JSON Schemas name secrets without holding any
_DOCUMENTS = frozenset({"snapshot", "state", "value", "content", "result"})  # roots that `paths` start from
_BINARY = "data"  # the `type` of a source that carries base64

Model = TypeVar("Model", bound=BaseModel)


class Redactor:
    """Replaces secrets. Compiled once and shared freely: the result depends on the input alone."""

    def __init__(
        self,
        keys: Iterable[str] = DEFAULT_KEYS,
        patterns: Iterable[SecretPattern | str | re.Pattern[str]] = DEFAULT_PATTERNS,
        paths: Iterable[str] = (),
        replace: str = "[redacted]",
        *,
        also: Callable[[str], str] | None = None,
        window: int = 8_192,
        hold: int = 256,
    ) -> None:
        """`also` gets every text last. In streams, `window` bounds the text that one stream holds back, and `hold` is
        the longest secret, known by your own pattern alone, that is found across two pieces."""
        if window < 1_024 or not 0 < hold <= window // 2:
            raise ValueError("window must be at least 1024 characters, and hold between 1 and half of it")
        self.replace = replace
        self.window = window
        self.hold = hold
        self.also = also
        weak = WEAK_KEYS if keys is DEFAULT_KEYS else ()
        self.keys, self.scanner, custom = _compiled(tuple(keys), tuple(weak), tuple(patterns))
        self.paths = Paths(paths)
        # Short texts without a secret: the same few names and words stand in every value.
        self._plain: set[str] = set()
        self.harmless: set[str] = set()  # deltas that begin no secret
        self.openers: set[str] = set()  # those, and what begins none at the beginning of a text
        everything = also is not None or bool(self.paths)
        # Whether encoded bytes may hold a secret; and the same, more exact and slower.
        self.glimpse = _anything if everything else self.scanner.glimpse
        self.suspects = _anything if everything else self.scanner.suspects
        self.familiar = Familiar((), ()) if everything else self.scanner.familiar
        self.holds_always = custom  # the beginning of a foreign pattern is unknown

    def text(self, text: str) -> str:
        """The text without its secrets; JSON inside the text is read, however often it is escaped."""
        if text not in self._plain:
            found = self.scanner.findings(text)
            if found:
                text = self.replaced(text, found)
            elif len(text) <= SHORT and len(self._plain) < REMEMBERED:
                self._plain.add(text)
        return text if self.also is None else self.also(text)

    def value(self, value: Any, path: str = "") -> Any:
        """A JSON-like value without its secrets; `path` is the JSON Pointer of its place in its document."""
        return self._value(value, _Place(False, self.paths.below(path)))

    def event(self, event: AnyEvent, data: bytes | None = None) -> AnyEvent:
        """The event without its secrets, or the same object when there are none. Pass its encoded bytes as `data` to
        save encoding it again."""
        return self.model(event) if self.suspects(encode(event) if data is None else data) else event

    def model(self, model: Model) -> Model:
        """A message, an event or any other model of the protocol without its secrets."""
        changes = {
            name: changed
            for name, value in (model.__dict__ | (model.__pydantic_extra__ or {})).items()
            if (changed := self._field(model, name, value)) is not value
        }
        if not changes:
            return model
        extra = model.__pydantic_extra__ or {}
        copy = model.model_copy(update={name: value for name, value in changes.items() if name not in extra})
        if extra:
            copy.__pydantic_extra__ = extra | {
                name: value for name, value in changes.items() if name in extra
            }
        return copy

    def stream(self) -> StreamRedactor:
        """A redactor for the events of one thread, which finds secrets that are split over deltas."""
        return StreamRedactor(self)

    def replaced(self, text: str, findings: Iterable[Finding]) -> str:
        """The text with the findings replaced; a replacement that is there already stays."""
        out: list[str] = []
        at, replace = 0, self.replace
        for start, end, quote, _, _ in findings:
            quoted = quote and text[start:end] != replace
            out += (text[at:start], f"{quote}{replace}{quote}" if quoted else replace)
            at = end
        out.append(text[at:])
        return "".join(out)

    def _field(self, model: BaseModel, name: str, value: Any) -> Any:
        if (
            value is None
            or name in EXEMPT_FIELDS
            or (name == "value" and getattr(model, "type", "") == _BINARY)
        ):
            return value
        if isinstance(operation := getattr(model, "path", None), str) and name == "value":
            return self._patched(operation, value)
        rooted = name in _DOCUMENTS and not isinstance(value, str)
        view = self.paths if rooted else self.paths.none
        return self._value(value, _Place(name in self.keys, view, names=name not in _SCHEMAS))

    def _patched(self, path: str, value: Any) -> Any:
        """The value of a patch, redacted as at the place it is written to."""
        secret = any(name in self.keys for name in path.split("/")[1:])
        return self._value(value, _Place(secret, self.paths.below(path)))

    def _value(self, value: Any, place: _Place) -> Any:
        secret = place.secret or place.paths.here
        match value:
            case str():
                if place.name and self.keys.may_hold(place.name, value):
                    return self.replace
                return self.replace if secret and value and not is_reference(value) else self.text(value)
            case None | bool():
                return value
            case int() | float():
                return self.replace if secret else value
            case dict() | list() | tuple() | Mapping() if place.depth >= DEEPEST:
                return self.replace
            case dict() | Mapping():  # most are dicts, and the checks for the others take longer
                described = place.secret and place.name and is_schema(as_mapping(value).items())
                return self._mapping(value, place._replace(secret=False) if described else place)
            case list() | tuple():
                return self._items(value, place)
            case BaseModel():
                return self.model(value)
            case _:
                return value

    def _items(self, value: Any, place: _Place) -> Any:
        items = [self._value(item, place.into(str(at), ())) for at, item in enumerate(value)]
        return value if all(map(operator.is_, items, value)) else items

    def _mapping(self, value: Any, place: _Place) -> Any:
        items: dict[Any, Any] = {}
        same = True
        title = value.get("name", value.get("key"))  # `{"name": "DB_PASSWORD", "value": …}`
        names_secret = place.names and isinstance(title, str) and title in self.keys
        for key, item in value.items():
            named = self.text(key) if isinstance(key, str) else key
            step = title if names_secret and key == "value" else str(key)
            items[named] = changed = self._value(item, place.into(step, self.keys))
            same = same and changed is item and named is key
        return value if same else items


@lru_cache(maxsize=8)
def _compiled(
    names: Sequence[str], weak: Sequence[str], patterns: Sequence[SecretPattern | str | re.Pattern[str]]
) -> tuple[KeyNames, Scanner, bool]:
    """What all redactors of the same rules share, for it takes a tenth of a second; and whether a pattern is the user's."""
    keys = KeyNames(names, weak)
    custom = [Linear(each) for each in patterns if not isinstance(each, SecretPattern)]
    own = [each for each in patterns if isinstance(each, SecretPattern)]
    return keys, Scanner(keys, own, custom), bool(custom)


def _anything(data: str | bytes) -> bool:
    return True


class _Place(NamedTuple):
    """The place of a value: whether its names or pointers mark it as secret. A tuple, because every value has one."""

    secret: bool
    paths: Paths
    depth: int = 0
    names: bool = True  # whether key names count here
    name: str = ""  # the key it stands under

    def into(self, step: str, keys: KeyNames | tuple[()]) -> _Place:
        secret = self.secret or self.paths.here or (self.names and step in keys)
        name = step if self.names else ""
        return _Place(
            secret, self.paths.into(step) if self.paths else self.paths, self.depth + 1, self.names, name
        )
