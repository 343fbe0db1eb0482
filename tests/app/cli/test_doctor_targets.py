"""`runcast doctor --broadcast` asks the target itself, without publishing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from runcast.app.cli import doctor
from runcast.app.cli.doctor import Finding, examine
from runcast.broadcast import HUB, Budget, Envelope
from tests.broadcast.publishers.http_stand_in import Answer, listening
from tests.servers import free_port


async def target(url: str) -> Finding:
    (found,) = [each for each in await examine("memory://", broadcast=url) if each.what == "broadcast"]
    return found


@pytest.mark.parametrize(
    ("answer", "mark", "sentence"),
    [
        ((200, b'{"channels":{}}', {}), "ok", "accepts the app id, the key and the secret"),
        (
            (401, b"Authentication signature invalid.", {}),
            "bad",
            "check the key and the secret in the publisher's URL",
        ),
        ((404, b"No matching application for ID [9999].", {}), "bad", "check the app id and the path"),
        ((200, b'{"error":"unknown app","code":404}', {}), "bad", "check the app id and the path"),
        ((503, b"", {}), "bad", "the target answered 503; runs go on without it"),
    ],
)
async def test_reverb_is_tried_for_real(answer: Answer, mark: str, sentence: str) -> None:
    with listening(lambda *request: answer) as server:
        found = await target(f"reverb://key:secret@127.0.0.1:{server.server_port}/9999")
    assert (found.mark, sentence in found.text) == (mark, True), found.text
    assert "secret@" not in found.text
    ((path, _, body),) = server.requests
    assert path.startswith("/apps/9999/channels?auth_key=key&")
    assert body == b""


async def test_a_target_that_is_not_there_is_bad() -> None:
    for url in (f"redis://127.0.0.1:{free_port()}", f"nats://127.0.0.1:{free_port()}", "ghost://x"):
        assert (await target(url)).mark == "bad"
    assert (await target("memory://")).mark == "ok"


async def test_a_publisher_that_cannot_be_tried_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        name = "silent"
        budget: Budget = HUB

        async def publish(self, channel: str, envelopes: Sequence[Envelope]) -> None:
            raise AssertionError("the doctor publishes nothing")

        async def aclose(self) -> None:
            pass

    monkeypatch.setattr(doctor, "open_publisher", lambda url: Silent())
    found = await target("silent://")
    assert (found.mark, "cannot be tried" in found.text) == ("note", True)
