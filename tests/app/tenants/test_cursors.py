"""Sealed cursors: they lead back to their place, name nothing, and are this host's alone."""

from __future__ import annotations

from base64 import urlsafe_b64decode

import pytest
from ag_ui.core import RunStartedEvent
from hypothesis import given
from hypothesis import strategies as st

from runcast.app import BadRequest, Cast
from runcast.app.tenants.cursors import BLOCK, PREFIX, seal, shown, unseal
from tests.app.agents import parrot
from tests.app.serving import serving

PLACES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=512)


@given(PLACES, st.sampled_from(["secret", None]))
def test_a_cursor_leads_back_to_its_place(place: str, secret: str | None) -> None:
    assert unseal(secret, seal(secret, place)) == place


def test_a_cursor_names_nothing_and_is_another_one_each_time() -> None:
    one, other = seal("secret", "ann-private"), seal("secret", "ann-private")
    assert one != other
    raw = urlsafe_b64decode(one.removeprefix(PREFIX) + "==")
    assert b"ann" not in raw
    assert len(seal("secret", "a")) == len(seal("secret", "a" * BLOCK))  # nor its exact length


@pytest.mark.parametrize("secret", ["other", None])
def test_a_cursor_is_for_hosts_with_one_secret(secret: str | None) -> None:
    with pytest.raises(BadRequest, match="list from the beginning"):
        unseal(secret, seal("secret", "t1"))


@pytest.mark.parametrize("harm", ["cut", "changed", "empty", "no base64", "é"])
def test_a_harmed_cursor_is_refused(harm: str) -> None:
    cursor = seal("secret", "t1")
    harmed = {
        "cut": cursor[:-1],
        "changed": cursor[:-30] + ("A" if cursor[-30] != "A" else "B") + cursor[-29:],
        "empty": PREFIX,
        "no base64": f"{PREFIX}a",
        "é": f"{PREFIX}é",
    }[harm]
    with pytest.raises(BadRequest):
        unseal("secret", harmed)


@pytest.mark.parametrize("text", ["", "t1", "=", "=c", "ü/=c."])
def test_what_does_not_look_like_a_cursor_is_a_text(text: str) -> None:
    assert unseal("secret", text) == text


def test_without_a_secret_another_process_reads_no_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    cursor = seal(None, "t1")
    monkeypatch.setattr("runcast.app.tenants.cursors._own_secret", lambda: "of another process")
    with pytest.raises(BadRequest):
        unseal(None, cursor)


@pytest.mark.parametrize("text", ["t1", "", "=c", "=c.", "=c.AAAA"])
def test_a_text_that_may_be_shown_is_its_own_cursor_unless_it_looks_sealed(text: str) -> None:
    cursor = shown("secret", text)
    assert unseal("secret", cursor) == text
    assert (cursor == text) is not text.startswith(PREFIX)


async def test_a_thread_whose_id_looks_like_a_cursor_breaks_no_list() -> None:
    """Whoever may name threads would keep others from what stands behind it."""
    names = ["=c.", "=c.AAAA", "=c.ann-1"]
    cast = Cast.open("memory://", agents=[parrot])
    async with serving(cast, authorize=lambda *_: True) as host:
        for name in names:
            await cast.log.append(name, RunStartedEvent(thread_id=name, run_id="r"))
        listed: list[str] = []
        after = ""
        while after is not None:
            page = await host.http.get("/threads", params={"after": after, "limit": 1})
            assert page.status_code == 200
            listed += [each["thread_id"] for each in page.json()["threads"]]
            after = page.json()["next"]
        assert listed == names
