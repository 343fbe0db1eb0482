"""Finds the places of secrets in a text.

Two ways: by form (`patterns.py`), and by the name before a value (`password: …`, `"apiKey":"…"`), also where that is JSON
inside a string inside JSON, however often escaped. Reads whole texts and texts that still grow: for those it reports from
where on nothing is certain yet. Does not know events, or how a secret is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal

from runcast.slim.redaction.glimpse import (
    Search,
    either,
    endings,
    glimpse_of,
    grouped,
    has_marks,
    together,
    unescaped,
)
from runcast.slim.redaction.key_names import SUFFIX, KeyNames, words
from runcast.slim.redaction.outline import Familiar
from runcast.slim.redaction.rules.name_trail import trail
from runcast.slim.redaction.search_windows import PIECE, Span, blocks, joined, matches, spans_of
from runcast.slim.redaction.secret_pattern import RUN, SecretPattern, compiled
from runcast.slim.redaction.secret_values import (
    is_harmless,
    is_reference,
    is_schema_text,
    looks_unlike_a_word,
)
from runcast.slim.redaction.value_extent import KEPT, WORD, Finding, value_behind, word_behind
from runcast.slim.values.linear_regex import NOTHING, Linear, quick_finder, searchable

LONGEST_NAME = 40
LONGEST_LEAD = 192  # a name and what stands between it and its value

_OPERATOR = r"(?:=>|<-|!==?|===|%3[dD]|[+.?|]{1,2}=|:{0,2}[:=]=?)"
# The type between a name and its string, in a program: `token: string = "…"`.
_TYPED = (
    r"(?:&?(?:'static )?(?:str|[sS]tring|bytes|SecretStr|[aA]ny|char)(?:\s?\|\s?[A-Za-z]{1,12})?"
    r"\s{0,4}=\s{0,4}+(?=\\*(?:[\"'`]|\Z)))?+"
)
# What stands between a name and its value, and a value that nothing quotes.
_tail = re.compile(
    r"(?:(?=[\\\"'*`\]\[\s])(?P<q>\\*[\"'])?(?:\*\*|`)?\]?(?:\[[0-9]{0,5}\])?\s{0,24}+)?+"
    rf"{_OPERATOR}\s{{0,24}}+(?:\*\*\s?)?{_TYPED}(?:[|>][+-]?(?:\s|\\+n){{1,12}}+|!!binary\s|[bBrRuU](?=[\"']))?(?:(?P<open>\\*[\"'`])|{WORD})?"
)
_OPERATORS = re.compile("[:=/\"'\\\\<%]")
_IDENTIFIER = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
_WHOLE_LINE = frozenset(
    {"authorization", "cookie", "cookies", "phrase", "mnemonic", "codes"}
)  # their values have spaces in them
_BEFORE_RUN = "\\\"'` \t\r\n"
BESIDE = 8  # characters before those
SHORT = 16  # the longest beginning of a text that is cached
TOGETHER = 12  # forms with hints that are searched at once, before those of each


class Scanner:
    """Finds secrets by form and by name. Compiled once, keeps no state."""

    def __init__(self, keys: KeyNames, forms: Sequence[SecretPattern], custom: Sequence[Linear]) -> None:
        shared = [form for form in forms if not form.apart]
        apart = [form for form in forms if form.apart]
        usual = [form for form in forms if not (form.apart or form.besides)]
        groups = [usual[at : at + TOGETHER] for at in range(0, len(usual), TOGETHER)]
        alone = ([form] for form in forms if form.apart or form.besides)
        self._forms = [together(some) for some in (*groups, *alone)]
        self._opens = grouped(form.sign or form.onset for form in forms if not form.adjacent)
        self._adjacent = [compiled(form.opening) for form in forms if form.adjacent]
        self._unbroken = _any(form.opening for form in forms if form.unbroken)
        self._broken = [
            (quick_finder([form.onset]), compiled(form.opening))
            for form in forms
            if not (form.unbroken or form.adjacent)
        ]
        self._breaks = grouped(form.onset for form in forms if not (form.unbroken or form.adjacent))
        self._keys = keys
        self._kind = lru_cache(maxsize=4096)(self._kind_of)  # the same few names stand in a text
        self._custom = custom
        hints = [form.hint for form in forms if has_marks(form) and not form.apart] + [
            one.source for one in custom
        ]
        names: list[str] = []
        announced = NOTHING
        self._trail = trail(keys.names)
        if keys.names:
            name = f"(?i:{keys.pattern()})"
            announced = rf"{name}{SUFFIX}\\*[\"']?(?:\*\*|`)?\]?(?:\[[0-9]{{0,5}}\])?\s*{_OPERATOR}"
            between = r"(?:\\*[\"']|\[[0-9]{0,5}|\]|\\+[nrt]|\s|\*\*|`)*"
            names.append(rf"{name}{SUFFIX}{between}(?:[+.?|]{{1,2}}=|[:=]|!=|<-|%3[dD])")
            # The path of a patch ends with a name, and its value stands elsewhere.
            names.append(rf"(?i:{keys.pattern(strong=True)}){SUFFIX}(?:{between}/|\\*[\"'])")
        self._announced = quick_finder([announced])
        onset = grouped(form.onset for form in shared if not form.adjacent)
        self._onset = either(onset, quick_finder(form.onset for form in apart))
        # Whether a text, or JSON bytes, may hold a secret.
        shaped = [form.hint for form in forms if not has_marks(form)]
        named = quick_finder(names)
        formed = either(grouped(hints), quick_finder(shaped))
        began, rare = grouped(form.onset for form in shared), quick_finder(form.onset for form in apart)
        self.glimpse = glimpse_of(keys, forms, custom)
        self.mentions = either(either(named, formed), quick_finder(form.hint for form in apart))
        self.familiar = Familiar(names, (form.hint for form in forms))
        self._named_mark = named
        self.begins = either(either(began, rare), formed)
        self.wakes = lru_cache(maxsize=4096)(self._wakes)  # of a delta; tokens repeat
        self._first = lru_cache(maxsize=4096)(self._growing)  # the same few words begin a text
        # Whether a delta may end a word that began in the one before: `ret a1b2…` itself does not show what it is about.
        split = endings(mark.rstrip() for form in forms for mark in form.marks)
        self.resumes = quick_finder([*split, *(form.rests for form in forms if form.rests)])

    def suspects(self, data: bytes) -> bool:
        """The same as `mentions`, faster for JSON bytes, above all for long ones."""
        if not self.glimpse(data):
            return False
        return self.mentions(data) or (b"\\" in data and self.mentions(unescaped(data)))

    def _wakes(self, delta: str) -> bool:
        """Whether a delta may hold a secret, or its end may begin one. Before each value stands an operator."""
        if self.begins(delta):
            return True
        return _OPERATORS.search(delta) is not None and self._named_mark(delta)

    def findings(self, text: str, since: int = 0) -> list[Finding]:
        """The secrets of a whole text, in order, none overlapping another. Before `since` may be the end of a longer one."""
        plain = searchable(text)
        return (
            _merged(each for each in self._each(plain, since) if not each.weak) if self.glimpse(plain) else []
        )

    def growing(self, text: str, since: int, unsure: int) -> tuple[Sequence[Finding], int, bool]:
        """The secrets so far, from where on to wait, and whether to scan again when more text comes. All before `since`
        is decided; an unconfirmed secret begins among the last `unsure` characters or not at all."""
        plain = searchable(text)
        if len(plain) <= SHORT:
            # As from any other `since`: `_growing` looks 64 characters before it.
            return self._first(plain, 0, unsure)
        return self._growing(plain, since, unsure)

    def _growing(self, plain: str, since: int, unsure: int) -> tuple[Sequence[Finding], int, bool]:
        found = _merged(self._each(plain, since)) if self.glimpse(plain) else []
        reach = max(since - 64, len(plain) - unsure, 0)
        stirs = self._onset(plain[reach:])
        opens = stirs and self._opens(plain)
        waits = [*self._adjoining(plain, reach)]
        if not (found or opens or waits):
            return (), len(plain), stirs
        if opens:
            waits.extend(self._openings(plain, reach))
        if not found:
            return (), min(waits, default=len(plain)), stirs or bool(waits)
        waits += [each.start for each in found if each.open or each.end == len(plain)]
        start = min(waits, default=len(plain))
        for each in reversed(found):
            if each.start < start < each.end:
                start = each.start
        return tuple(each for each in found if each.start < start), start, stirs or bool(waits)

    def _each(self, text: str, since: int) -> Iterator[Finding]:
        yield from self._formed(text, since)
        yield from self._named(text)
        yield from self._customised(text)

    def _formed(self, text: str, since: int) -> Iterator[Finding]:
        for (_, pattern, form), spans in self._near(text):
            group = "secret" if "secret" in pattern.groupindex else 0
            for match in matches(pattern, text, spans, form.reach):
                if form.whole and match.start(group) < since:
                    continue  # the rest of a longer word, or of a longer row
                if form.parts is not None:
                    at = match.start()
                    yield from (Finding(at + start, at + end) for start, end in form.parts(match.group()))
                elif match[group] and (form.check is None or form.check(match.group())):
                    yield Finding(*match.span(group))

    def _near(self, text: str) -> Iterator[tuple[Search, Sequence[Span]]]:
        """The forms that may stand in the text, and where they may begin."""
        if len(text) <= PIECE:
            for some, forms in self._forms:
                yield from (
                    (each, ((0, len(text)),)) for each in (forms if some(text) else ()) if each[0](text)
                )
            return
        for block in blocks(text):
            near = [each for each in block if self.glimpse(each.text)]
            for some, forms in self._forms if near else ():
                nearer = [each for each in near if some(each.text)]
                for search in forms if nearer else ():
                    spans = joined(each for each in nearer if search[0](each.text))
                    if spans:
                        yield search, spans

    def _customised(self, text: str) -> Iterator[Finding]:
        for pattern in self._custom:
            if pattern.found(text):
                yield from (Finding(start, end) for start, end in pattern.spans(text))

    def _adjoining(self, text: str, reach: int) -> Iterator[int]:
        """Where forms may have begun that show at the end of the text alone."""
        # They are the last run, and an operator and a quote before it.
        near = max(reach, len(text[:-1].rstrip(RUN).rstrip(_BEFORE_RUN)) - BESIDE)
        for opening in self._adjacent:
            match = opening.search(text, near)
            if match is not None:
                inner = match.start("secret")
                yield inner if inner >= 0 else match.end()

    def _openings(self, text: str, reach: int) -> Iterator[int]:
        match = self._unbroken.search(text, max(reach, len(text.rstrip(RUN))))
        if match is not None:
            yield match.end()
        tail = text[reach:]
        for begins, opening in self._broken if self._breaks(tail) else ():
            match = opening.search(text, reach) if begins(tail) else None
            if match is not None:
                inner = match.start("secret") if "secret" in opening.groupindex else -1
                yield inner if inner >= 0 else match.start()

    def _leads(self, text: str) -> Iterator[tuple[int, int, re.Match[str]]]:
        """Where a name begins and ends that stands before an operator, and what follows it. Found from the operator
        backwards: few places have one, many may begin a name."""
        size, tail, reverse = len(text), _tail.match, text[::-1]
        for start, stop in spans_of(text, self._announced, LONGEST_LEAD):
            # Read backwards, what lies behind the names comes first.
            area = max(0, size - stop - LONGEST_LEAD), size - max(0, start - LONGEST_NAME)
            spans = [each.span(1) for each in self._trail.finditer(reverse, *area)]
            found = ((size - ends, size - begins) for begins, ends in reversed(spans))
            leads = ((name, end, tail(text, end)) for name, end in found if start <= name < stop)
            yield from ((name, end, lead) for name, end, lead in leads if lead is not None)

    def _shorter(self, text: str, at: int, longer: re.Match[str]) -> tuple[int, int, re.Match[str]] | None:
        """The rest of a lead whose beginning was the value of another one, where it is a lead itself."""
        end = longer.end() if longer[3] is None else longer.start(3)
        rest = self._trail.search(text[at:end][::-1]) if end > at + 2 else None
        if rest is None:
            return None
        begins, ends = rest.span(1)
        lead = _tail.match(text, end - begins)
        return None if lead is None else (end - ends, end - begins, lead)

    def _named(self, text: str) -> Iterator[Finding]:
        """Values after a name that announces a secret."""
        if not self._announced(text):
            return
        at = 0
        for start, end, lead in self._leads(text):
            if start < at:
                shorter = self._shorter(text, at, lead)
                if shorter is None:
                    continue
                start, end, lead = shorter
            q, quote, word = lead.groups()
            at = lead.end() if word is None else lead.start(3)
            name = text[start:end]
            if start and text[start - 1] in _IDENTIFIER:
                name = _name_before(text, start) + name
            kind, operator = self._kind(name), text[end:at]
            if not kind or (
                quote is not None and q is None and _is_whole_string(text, end - len(name), operator, quote)
            ):
                continue
            if word is not None and q is None and kind != "whole line":
                found = word_behind(text, at, lead.end(), end)
            else:
                found = value_behind(text, at, q, quote, whole_line=kind == "whole line")
            if found is None:
                continue
            starts, at = found[:2]
            value = text[starts:at]
            if not (
                self._keys.may_hold(name, value, written=q is None)
                if kind == "weak"
                else self._is_secret(text, name, operator, quote, found, value)
            ):
                if not found.open:
                    at = starts
                    continue
                found = found._replace(weak=True)
            elif len(text) < at + 2 and any(each.fullmatch(value) for each in _CONTINUED):
                found = found._replace(open=True)  # the next word shows whether this is a sentence
            yield found

    def _kind_of(self, name: str) -> Literal["", "weak", "strong", "whole line"]:
        """How a name announces a secret, if it does."""
        if name not in self._keys:
            return "weak" if self._keys.is_weak(name) else ""
        return "whole line" if words(name)[-1] in _WHOLE_LINE else "strong"

    def _is_secret(
        self, text: str, name: str, operator: str, quote: str | None, found: Finding, value: str
    ) -> bool:
        """Whether the value is one, behind a name that announces it."""
        if " " in value:
            scheme, _, rest = value.partition(" ")
            if scheme.lower() in _SCHEMES and (is_reference(rest) or rest in _SCHEMES):
                return False
        if ("!=" in operator or "===" in operator) and not looks_unlike_a_word(value):
            return False
        if quote is not None:
            return not (is_reference(value) or value.lower() in (name.lower(), *KEPT))
        if value[:1] in ("{", "["):
            return not (is_schema_text(value) or is_harmless(value))
        if is_harmless(value) or (("==" in operator or "!=" in operator) and _is_compared(value)):
            return False
        if text[found.end : found.end + 1] == " " and _is_prose(text, found):
            return False
        return not (value.isascii() and value.replace("_", "").isalpha() and value in self._keys)


def _any(patterns: Iterable[str]) -> re.Pattern[str]:
    return compiled("|".join(f"(?:{pattern})" for pattern in patterns) or r"(?!)")


# Words that continue a sentence behind a colon and are no password.
_PROSE = re.compile(
    r"(?:a|an|and|at|enter|expected|expired|failed|for|how|in|invalid|is|it|missing|must|my|no|none|not|of|or|please"
    r"|export|set|run|press|required|see|should|that|the|then|this|to|type|use|what|when|where|which|with|wrong|yes|your)[.,!?]?"
)
_TYPE = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+){1,6}")
_IDENTIFIED = re.compile(r"[A-Za-z_]{4,40}")
_CONTINUED = (_PROSE, _TYPE, _IDENTIFIED)  # values that the text behind them may show to be none
_SCHEMES = frozenset({"bearer", "basic", "token", "jwt"})


def _is_whole_string(text: str, start: int, operator: str, quote: str) -> bool:
    """Whether the name and its operator are a string of their own, and the quote behind them ends it: `"TOKEN=" in text`."""
    return text.endswith(quote, 0, start) and not operator[: -len(quote)][-1:].isspace()


def _is_compared(value: str) -> bool:
    """A name that another one is compared with: `token == expected`."""
    name = value.rstrip(":")
    return name.isidentifier() and not any(map(str.isdigit, name))


def _is_prose(text: str, found: Finding) -> bool:
    """A word of a sentence behind a colon: `password: then press`; or a type, `password: FilterOrBool = False`; or a
    name that more is added to, `token = prefix + "TOKEN"`."""
    start, end = found.start, found.end
    next_one = text[end + 1 : end + 2]
    if next_one == "+" and _IDENTIFIED.fullmatch(text, start, end):
        return True
    if next_one == "=" and _TYPE.fullmatch(text, start, end):
        return True
    return (
        next_one.isalpha()
        and text[start - 2 : start] == ": "
        and _PROSE.fullmatch(text, start, end) is not None
    )


def _name_before(text: str, end: int) -> str:
    """The part of an identifier before `end`."""
    piece = text[max(0, end - LONGEST_NAME) : end]
    return piece[len(piece.rstrip(_IDENTIFIER)) :]


def _merged(findings: Iterable[Finding]) -> list[Finding]:
    every = list(findings)
    reached = 0
    for start, end, *_ in every:
        if start < reached or start == reached > 0:
            break
        reached = end
    else:
        return every
    every.sort(key=lambda found: (found.start, -found.end))
    merged: list[Finding] = []
    for each in every:
        last = merged[-1] if merged else None
        if last is None or each.start > last.end:
            merged.append(each)  # those that touch are one: nothing stands between them
        elif each.end > last.end:
            merged[-1] = Finding(last.start, each.end, last.quote, open=each.open)
    return merged
