"""Faults of redaction: a secret that stays, and a text that is changed without need."""

from __future__ import annotations

from tests.mutants.fault import Fault, faults

REDACTION = "slim/runcast/slim/redaction/"

FAULTS: tuple[Fault, ...] = (
    *faults(
        REDACTION + "stream_redactor.py",
        (
            'bare = fields["metadata"] is None and fields["raw_event"] is None and',
            'bare = fields["raw_event"] is None and',
        ),
        (
            'if fields["metadata"] is None and fields["raw_event"] is None and',
            'if fields["raw_event"] is None and',
        ),
        ("        if _carries(event) and (data is None or self._may_hold(data)):", "        if False:"),
        ('not self._scanner.begins("".join(recent)[-TAIL:] + delta)', "True"),
        (
            "    if event.metadata is not None or event.raw_event is not None or event.__pydantic_extra__:",
            "    if event.metadata is not None or event.raw_event is not None:",
        ),
        ("            if bare and fields[content] is None:", "            if bare:"),
        ("        if part == START:\n            self._streams = ({}, {}, {})\n", ""),
        ("        out = self._before(event)\n", "        out = []\n"),
        ("        if self._always or len(delta) > CONTEXT or", "        if len(delta) > CONTEXT or"),
        ("        if self._scanner.wakes(delta):\n            return False\n", ""),
        ("            return not recent\n", "            return True\n"),
        ('        if stream.muted:\n            return ""\n', ""),
        ("        if len(stream.held) > self._redactor.window:", "        if False:"),
        ("            return released + self._redactor.replace", "            return released"),
        ("        self._open += bool(text) - bool(stream.held)", "        self._open += bool(text)"),
        ("        if not self._always:\n            return wait\n", "        return wait\n"),
        (
            "            if each.start < wait < each.end:\n                wait = max(each.start, since)",
            "            pass",
        ),
        ("        if drawer < 2 and key in self._streams[1 - drawer]:", "        if False:"),
        ("            for drawer in (0, 1, 2)\n", "            for drawer in (0, 1)\n"),
        ("        return self._release(drawer, key, forget=True)", "        return []"),
        ("return [*self._release(0, event.message_id), *self._release(1, event.message_id)]", "return []"),
        ("        return self.close() if isinstance(event, RESTATES) else []", "        return []"),
        (
            'name not in ("metadata", "raw_event", "type", "delta")',
            'name not in ("raw_event", "type", "delta")',
        ),
        (
            "        released = self._redactor.replaced(text[since:wait], inside)\n",
            "        released = text[since:wait] if not inside else self._redactor.replaced(text[since:wait], inside[:1])\n",
        ),
        (
            "        return (self._redact_event(event, data) if data is None or self._may_hold(data) else event,)",
            "        return (event,)",
        ),
        (
            "        if data is None or self._may_hold(data):\n            return self._redact_event(event, data)\n",
            "",
        ),
        (
            "        if data is not None and data.translate(OUTLINE) in self._outlines:",
            "        if data is not None:",
        ),
        ("        remembers = len(self._openers) < REMEMBERED", "        remembers = True"),
    ),
    *faults(
        REDACTION + "outline.py",
        ("        if searched is False and not self._may_hold(outline):", "        if searched is False:"),
        ("named(outline) or formed(strings) or", "formed(strings) or"),
        ("named(outline) or formed(strings) or", "named(outline) or"),
        ('return f"[0{token.upper()}]" if fold and token.isalpha() else "0"', 'return "0"'),
        ('return f"(?:{token}|0)" if', "return token if"),
    ),
    *faults(
        REDACTION + "redactor.py",
        (
            "        self.familiar = Familiar((), ()) if everything else self.scanner.familiar",
            "        self.familiar = self.scanner.familiar",
        ),
        (
            "        everything = also is not None or bool(self.paths)",
            "        everything = bool(self.paths)",
        ),
        (
            "        everything = also is not None or bool(self.paths)",
            "        everything = also is not None",
        ),
        ("(model.__dict__ | (model.__pydantic_extra__ or {})).items()", "model.__dict__.items()"),
        ("            quoted = quote and text[start:end] != replace", "            quoted = quote"),
        (
            "            case dict() | list() | tuple() | Mapping() if place.depth >= DEEPEST:\n                return self.replace\n",
            "",
        ),
        ("                return self.replace if secret else value\n", "                return value\n"),
        ("            named = self.text(key) if isinstance(key, str) else key", "            named = key"),
        ('        secret = any(name in self.keys for name in path.split("/")[1:])', "        secret = False"),
        (
            "        secret = self.secret or self.paths.here or (self.names and step in keys)",
            "        secret = self.paths.here or (self.names and step in keys)",
        ),
        ("names=name not in _SCHEMAS)", "names=True)"),
        ("secret and value and not is_reference(value) else", "secret and value else"),
        (
            "return self._mapping(value, place._replace(secret=False) if described else place)",
            "return self._mapping(value, place)",
        ),
        ("        return text if self.also is None else self.also(text)\n", "        return text\n"),
        ("if window < 1_024 or not 0 < hold <= window // 2:", "if False:"),
    ),
    *faults(
        REDACTION + "scanner.py",
        ("        yield from self._customised(text)", "        pass"),
        ("        yield from self._formed(text, since)", "        pass"),
        ("            yield found\n", "            yield found\n            at = starts\n"),
        ('if word is not None and q is None and kind != "whole line":', "if word is not None and q is None:"),
        (
            'return "weak" if self._keys.is_weak(name) else ""',
            'return ""',
        ),
        ("        if start < reached or start == reached > 0:\n", "        if False:\n"),
        (
            "            return not (is_reference(value) or value.lower() in (name.lower(), *KEPT))\n        if value",
            "            return True\n        if value",
        ),
        ("            return not (is_schema_text(value) or is_harmless(value))", "            return True"),
        ("        if is_harmless(value) or ((", "        if is_reference(value) or (("),
        (
            '        if text[found.end : found.end + 1] == " " and _is_prose(text, found):\n            return False\n',
            "",
        ),
        ('(("==" in operator or "!=" in operator) and _is_compared(value))', "False"),
        (' or (b"\\\\" in data and self.mentions(unescaped(data)))', ""),
        (
            '        if ("!=" in operator or "===" in operator) and not looks_unlike_a_word(value):',
            "        if False:",
        ),
        ("        elif each.end > last.end:", "        elif False:"),
        (
            "elif match[group] and (form.check is None or form.check(match.group())):",
            "elif match[group]:",
        ),
        (
            "            if each.start < start < each.end:\n                start = each.start",
            "            pass",
        ),
    ),
    *faults(
        REDACTION + "value_extent.py",
        ("escapes < depth or escapes % (2 * (depth + 1)) == depth:", "escapes == depth:"),
        (
            "            if depth == 0:\n                return Finding(at, position, quote)",
            "            return Finding(at, position, quote)",
        ),
        ("            position = len(text) if closer is None else closer.end()", "            pass"),
        ("_SHORTEST = 4  #", "_SHORTEST = 9  #"),
        ("        elif len(mark) < len(quote):", "        elif False:"),
        ("            if closer is not None and len(closer.group()) < len(quote)", "            if False"),
        ("        end = _rest.match(text, end).end()", "        end = at + LONG"),
    ),
    *faults(
        REDACTION + "search_windows.py",
        ("            if match.end() > stop:", "            if False:"),
        ("text[max(0, at - BEFORE) : at + PIECE + HINTED]", "text[max(0, at - BEFORE) : at + PIECE]"),
        ("if finder(text[max(0, at - BEFORE) : end + behind])", "if finder(text[at:end])"),
    ),
    *faults(
        REDACTION + "key_names.py",
        ("        certain = suffix in STAGES or suffix.isdecimal()", "        certain = True"),
        ('and words(base)[-1:] != ("token",) and', "and"),
        ('        if " ".join(parts[-2:]) in HARMLESS_NAMES:\n            return False\n', ""),
        ("range(1, self._longest + 1)", "range(1, self._longest)"),
        ("and not last.endswith(_HARMLESS_JOINED)", ""),
        ("digits=not _SHORT_NUMBERS.isdisjoint(parts[-2:])", "digits=False"),
        ("for count in (1, 2, 3))", "for count in (1,))"),
    ),
    *faults(
        REDACTION + "paths.py",
        ("following: set[Steps] = {()} if self.here else set()", "following: set[Steps] = set()"),
        ('step.replace("~1", "/").replace("~0", "~")', 'step.replace("~0", "~").replace("~1", "/")'),
        ("                following.add(steps)\n            elif", "                pass\n            elif"),
    ),
    *faults(
        "slim/runcast/slim/redaction/redactor.py",
        ('or (name == "value" and getattr(model, "type", "") == _BINARY)', 'or name == "value"'),
        (
            "        names_secret = place.names and isinstance(title, str) and title in self.keys\n",
            "        names_secret = False\n",
        ),
        (
            "        return self._value(value, _Place(secret, self.paths.below(path)))\n\n    def _value",
            "        return self._value(value, _Place(secret, self.paths.none))\n\n    def _value",
        ),
    ),
    *faults(
        "slim/runcast/slim/redaction/stream_redactor.py",
        ("        redacted = self._redactor.event(bare)\n", "        redacted = bare\n"),
        (
            "        stream.recent = deque((text[max(0, wait - CONTEXT) : wait],), PIECES)\n",
            "        stream.recent = deque((), PIECES)\n",
        ),
        (
            "        text, since = context + stream.held + stream.owed, len(context)\n        if not",
            '        context = ""\n        text, since = context + stream.held + stream.owed, len(context)\n        if not',
        ),
    ),
    *faults(
        "slim/runcast/slim/redaction/redactor.py",
        (
            "            case int() | float():\n                return self.replace if secret else value",
            "            case int() | float():\n                return value",
        ),
        (
            "return self._value(value, _Place(secret, self.paths.below(path)))\n\n    def _value",
            "return self._value(value, _Place(secret, self.paths.none))\n\n    def _value",
        ),
        ('title = value.get("name", value.get("key"))', 'title = value.get("name")'),
        (
            "                if place.name and self.keys.may_hold(place.name, value):\n                    return self.replace\n",
            "",
        ),
    ),
    *faults(
        "slim/runcast/slim/redaction/key_names.py",
        ("_WORD.findall(name[-LONGEST_NAME:])", "_WORD.findall(name[:LONGEST_NAME])"),
        (
            "if len(value) < SHORTEST_GENERATED and not value.isdecimal():",
            "if len(value) < SHORTEST_GENERATED:",
        ),
    ),
    *faults(
        "slim/runcast/slim/redaction/secret_values.py",
        ("    if digits and _CODE_NUMBER.fullmatch(value):", "    if _CODE_NUMBER.fullmatch(value):"),
        ("and _UUID.fullmatch(value) is None", "and True"),
        ('(name != "type" or (isinstance(value, str) and value in _SCHEMA_TYPES))', "True"),
    ),
    *faults(
        "slim/runcast/slim/redaction/secret_pattern.py",
        ("% 10 == 0 and any(digits)", "% 10 == 0"),
    ),
)
