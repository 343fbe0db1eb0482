"""Older dialects: whatever is taken comes out as AG-UI 1.0, and says the same when it is read once more."""

from __future__ import annotations

from runcast.slim import (
    AnyEvent,
    WireError,
    decode,
    decode_input,
    decode_lines,
    encode,
    encode_input,
    is_known,
)

TOKENS = (
    *(b'"type":', b'"THINKING_START"', b'"THINKING_END"', b'"THINKING_TEXT_MESSAGE_START"', b'"title":"x"'),
    *(b'"THINKING_TEXT_MESSAGE_CONTENT"', b'"THINKING_TEXT_MESSAGE_END"', b'"TEXT_MESSAGE_START"'),
    *(b'"TEXT_MESSAGE_CONTENT"', b'"TEXT_MESSAGE_END"', b'"TOOL_CALL_START"', b'"TOOL_CALL_ARGS"'),
    *(b'"RUN_STARTED"', b'"RUN_FINISHED"', b'"outcome":"interrupt"', b'"interrupt":{"id":"i","payload":1}'),
    *(
        b'"input":',
        b'"messages":',
        b'"tools":',
        b'"context":',
        b'"forwardedProps":',
        b'"state":',
        b'"resume":',
    ),
    *(b'"thread_id":"t"', b'"run_id":"r"', b'"message_id":"m"', b'"tool_call_id":"c"', b'"threadId":"t"'),
    *(
        b'"runId":"r"',
        b'"delta":"d"',
        b'"role":"assistant"',
        b'"tool_call_name":"n"',
        b'"raw_event":',
        b"null",
    ),
    *(
        b'"content":',
        b'"toolCalls":',
        b'"function":',
        b'"arguments":',
        b'"parameters":',
        b'"binary"',
        b'"data":',
    ),
    *(b'"mimeType":"image/png"', b'"url":', b'"source":', b"\n", b'{"type":', b"}", b"[", b"]"),
)


def check(data: bytes) -> None:
    """Raise for whatever is not as promised."""
    whole = _stream([data])
    assert _stream([data[: len(data) // 2], data[len(data) // 2 :]]) == whole, "cut in two"
    for line in data.split(b"\n")[:8]:
        _alone(line)
        _input(line)


def _stream(chunks: list[bytes]) -> tuple[list[bytes], str]:
    found: list[bytes] = []
    try:
        for event in decode_lines(chunks):
            found.append(encode(event))
            assert encode(decode(found[-1], legacy=False)) == found[-1]
    except WireError as error:
        return found, str(error)
    return found, ""


def _alone(line: bytes) -> None:
    plain, older = _event(line, legacy=False), _event(line, legacy=True)
    if older is None:
        assert plain is None or not is_known(plain), "what 1.0 has is refused as something older"
        return
    written = encode(older)
    again = decode(written, legacy=False)
    assert type(again) is type(older)
    assert encode(again) == written, "what was upgraded is 1.0"
    assert encode(decode(written)) == written, "and needs no upgrade"


def _event(line: bytes, *, legacy: bool) -> AnyEvent | None:
    try:
        return decode(line, legacy=legacy)
    except WireError:
        return None


def _input(line: bytes) -> None:
    try:
        given = decode_input(line)
    except WireError:
        return
    written = encode_input(given)
    assert encode_input(decode_input(written, legacy=False)) == written
    assert encode_input(decode_input(written)) == written
