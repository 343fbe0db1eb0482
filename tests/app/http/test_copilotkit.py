"""The request that CopilotKit's runtime makes of an AG-UI agent, byte for byte as it was recorded.

`@copilotkit/runtime` 1.69.3 with `@ag-ui/client` 0.0.57 and Node 20.20, `HttpAgent` behind its node endpoint. It takes
304 MB to install, so it was run by hand: its own answer to a page was our stream, event for event.
"""

from __future__ import annotations

from tests.app.serving import sent, serving

HEADERS = {
    "content-type": "application/json",
    "accept": "text/event-stream",
    "accept-language": "*",
    "sec-fetch-mode": "cors",
    "user-agent": "node",
    "accept-encoding": "gzip, deflate",
}
BODY = (
    b'{"threadId":"ck-1","runId":"ck-r1","tools":[],"context":[],"forwardedProps":{},"state":{},'
    b'"messages":[{"id":"m1","role":"user","content":"hello from copilot"}]}'
)


async def test_its_request_is_answered_with_a_run() -> None:
    async with (
        serving() as host,
        host.http.stream("POST", "/agents/parrot", content=BODY, headers=HEADERS) as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert "content-encoding" not in answer.headers
        told = [each.event async for each in sent(answer)]
    assert (told[0]["type"], told[-1]["type"]) == ("RUN_STARTED", "RUN_FINISHED")
    assert told[-1]["threadId"] == "ck-1"
    assert "".join(each.get("delta", "") for each in told) == "hello from copilot "
