"""What a user of another tenant sends, with the ids of this one: none of it arrives, and none of this is shown."""

from __future__ import annotations

from tests.app.http.test_access import IN_PATH, THREAD_ROUTES, two_tenants
from tests.app.serving import Served, post_run, run_input

__all__ = ["two_tenants"]


async def test_no_route_reaches_another_tenants_thread(two_tenants: Served) -> None:
    """By its ids, a run of it as parent, a position in it, a cursor or a token: bob has a thread t1 of his own."""
    http, ann, bob = two_tenants.http, two_tenants.cast.for_tenant("ann"), {"x-user": "bob"}
    await post_run(http, text="ann's secret")
    await ann.annotations.add("t1", "tag", {"text": "secret"}, id="n1")
    entries = await ann.log.entries("t1")
    place = {"last-event-id": f"{entries[1].history}:{entries[1].seq}"}
    ids, texts = {**IN_PATH, "run_id": "r1", "message_id": "m-r1"}, list[str]()
    for method, path in sorted(THREAD_ROUTES, key=lambda each: each[0] == "DELETE"):
        body = {"message": "x", "from_run": "r1"} if path.endswith("branch") else {"title": "x"}
        sent = {} if method == "GET" else {"json": body}
        answer = await http.request(
            method, path.format(thread_id="t1", **ids), headers={**bob, **place}, **sent
        )
        texts.append(answer.text)
    forked = run_input("mine", thread="t2", run="r9", parentRunId="r1")
    texts.append((await http.post("/agents/parrot", json=forked, headers=bob)).text)
    token = (await http.post("/broadcasting/token", json={"thread_id": "t2"}, headers=bob)).json()["token"]
    for thread, status in (("t1", 403), ("t2", 200)):
        answer = await http.get(f"/threads/{thread}/envelopes", params={"token": token})
        assert answer.status_code == status
        texts.append(answer.text)
    assert not [text for text in texts if "secret" in text]
    assert await ann.log.entries("t1") == entries
    assert [each["id"] for each in await ann.annotations.of("t1")] == ["n1"]
