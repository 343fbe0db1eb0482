"""A request as a note: its name, its text, and the input that a run begins with."""

from __future__ import annotations

from ag_ui.core import ActivityMessage, AssistantMessage, UserMessage

from runcast.app.nodes.handover import RunRequest, input_for, new_messages, note_id


def test_a_notes_id_is_that_of_its_names_alone() -> None:
    names = [
        ("", "a", "bc"),
        ("", "ab", "c"),
        ("a", "bc"),
        ("", "abc"),
        ("abc",),
        ("", "a", "b", "c"),
        ("", "1:a"),
    ]
    ids = {note_id("run", *each) for each in names}
    assert len(ids) == len(names)
    assert note_id("run", "", "abc") == note_id("run", "", "abc") != note_id("stop", "", "abc")
    assert len(note_id("run", "t" * 10_000, "\ud800")) < 60


def test_an_agent_is_asked_without_what_is_only_shown() -> None:
    history = [
        UserMessage(id="u1", content="one"),
        ActivityMessage(id="a1", activity_type="plan", content={}),
        AssistantMessage(id="m1", content="two"),
    ]
    for on_busy in ("refuse", "queue"):
        request = RunRequest(
            "x", input_for("t", "r", [UserMessage(id="u2", content="three")]), append=True, on_busy=on_busy
        )  # type: ignore[arg-type]
        assert [each.id for each in request.with_history("t", "r", history).messages] == ["u1", "m1", "u2"]
    assert [each.id for each in RunRequest("x").with_history("t", "r", history).messages] == ["u1", "m1"]
    own = RunRequest("x", input_for("t", "r", history))
    assert own.with_history("t", "r", [UserMessage(id="u0", content="zero")]).messages == history


def test_what_a_client_had_when_it_wrote_is_not_new() -> None:
    one, two, three = (UserMessage(id=f"u{n}", content=str(n)) for n in (1, 2, 3))
    said = AssistantMessage(id="m", content="said")
    assert new_messages([one, two, said, three], [one, two]) == [three]
    assert new_messages([one, two], [one, two]) == []
    assert new_messages([], [one]) == []
    assert new_messages([one, said], []) == [one]
