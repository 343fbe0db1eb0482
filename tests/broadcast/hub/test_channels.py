"""Names of channels and the table of who is in them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runcast.broadcast import channel_for
from runcast.broadcast.hub import session_of
from runcast.broadcast.hub.channels import ChannelTable, Kind, canonical, kind_of, valid_name

HOSTILE = [
    "ż", "a/b", "../../etc", "a b", "x" * 500, "ż" * 500, "presence-x", "cache-x", "#server-to-user-x", "private-agent.x",
    "=b.YQ", "=h.0", "a\nb", "\0", "\ud800", "-", ".", "a;b", "=", "🙂",
]  # fmt: skip


@pytest.mark.parametrize("session_id", HOSTILE)
def test_any_thread_has_a_channel_of_its_own(session_id: str):
    name = channel_for(session_id)
    assert valid_name(name)
    assert name.startswith("private-agent.")
    assert session_of(name) in (session_id, None)


def test_no_two_threads_share_one():
    ids = [*HOSTILE, *(channel_for(each) for each in HOSTILE), *(channel_for(each)[14:] for each in HOSTILE)]
    assert len({channel_for(each) for each in set(ids)}) == len(set(ids))


@given(st.text(min_size=1), st.sampled_from(["private-agent.", "agent.", "presence-agent.", "private-mine."]))
def test_a_name_tells_its_thread_or_that_it_does_not(session_id: str, prefix: str):
    name = channel_for(session_id, prefix=prefix)
    assert valid_name(name)
    told = session_of(name, prefix=prefix)
    assert told == session_id or (told is None and len(session_id.encode("utf-8", "surrogatepass")) > 60)


@pytest.mark.parametrize(
    ("session_id", "segment"),
    [
        ("t-1_x@y", "t-1_x@y"),
        ("a.b", "a=2Eb"),
        ("a b", "a=20b"),
        ("a,b;c", "a=2Cb=3Bc"),
        ("user:42", "user=3A42"),
        ("a=2Eb", "a=3D2Eb"),
        ("ż/漢", "=C5=BC=2F=E6=BC=A2"),
        ("=b.YQ", "=3Db=2EYQ"),
        ("\ud800", "=ED=A0=80"),
    ],
)
def test_an_id_is_one_segment_and_plain_ids_are_readable(session_id: str, segment: str):
    assert channel_for(session_id) == f"private-agent.{segment}"
    assert session_of(f"private-agent.{segment}") == session_id


@given(st.text())
def test_laravels_pattern_takes_the_id_as_one_segment(session_id: str):
    """`Broadcast::channel('agent.{threadId}')` becomes `^agent\\.(?<threadId>[^\\.]+)`, at the name without `private-`."""
    name = channel_for(session_id)
    match = re.match(r"^agent.(?P<threadId>[^\.]+)", name.removeprefix("private-"))
    assert match is not None
    assert f"private-agent.{match['threadId']}" == name


@given(st.from_regex(r"(private-|presence-|)agent\.[-a-zA-Z0-9_=@,.;]{1,40}", fullmatch=True))
def test_any_name_stands_for_one_channel_and_one_thread(name: str):
    today = canonical(name)
    assert valid_name(today)
    assert canonical(today) == today
    assert session_of(today) == session_of(name)


@pytest.mark.parametrize(
    ("before", "session_id", "today"),
    [
        ("private-agent.a.b", "a.b", "private-agent.a=2Eb"),
        ("agent.a.b", "a.b", "agent.a=2Eb"),
        ("agent.a,b", "a,b", "agent.a=2Cb"),
        ("presence-agent.a=b", "a=b", "presence-agent.a=3Db"),
        ("private-agent.=b.xbw", "ż", "private-agent.=C5=BC"),
        ("private-agent.a=41", "a=41", "private-agent.a=3D41"),
        ("private-agent.=FF", "=FF", "private-agent.=3DFF"),
        ("private-agent.=h.ab12", None, "private-agent.=hab12"),
        ("private-agent.a=2Eb", "a.b", "private-agent.a=2Eb"),
        ("private-agent.=b.YQ", None, "private-agent.=b.YQ"),
        ("other.a.b", None, "other.a.b"),
    ],
)
def test_names_of_before_are_read(before: str, session_id: str | None, today: str):
    assert session_of(before) == session_id
    assert canonical(before) == today


@pytest.mark.parametrize(
    "name",
    [
        "private-agent.=b.YQ",
        "private-agent.=b.xbw==",
        "private-agent.=b.!",
        "private-agent.=b.xb",
        "private-agent.=b.a",
        "private-agent.=b._w",
    ],
)
def test_another_spelling_of_a_threads_name_is_nobodys(name: str):
    assert session_of(name) is None


@pytest.mark.parametrize("name", ["", "private-agent.", "other", "private-other.x", "agent", "=b.x"])
def test_names_that_are_no_threads(name: str):
    assert session_of(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a b",
        "a/b",
        "a\n",
        "x" * 201,
        "ż",
        "#x",
        "#server-to-user-",
        "#server-to-user-a b",
        7,
        None,
        ["x"],
    ],
)
def test_names_that_do_not_exist(name: object):
    assert not valid_name(name)


@pytest.mark.parametrize("name", ["a", "x" * 200, "private-a_b=c@d,e.f;g-h", "#server-to-user-u1"])
def test_names_that_exist(name: str):
    assert valid_name(name)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("agent.s1", Kind(False, False, False)),
        ("private-agent.s1", Kind(True, False, False)),
        ("presence-agent.s1", Kind(True, True, False)),
        ("private-cache-agent.s1", Kind(True, False, True)),
        ("presence-cache-x", Kind(True, True, True)),
        ("cache-x", Kind(False, False, True)),
        ("#server-to-user-u1", Kind(True, False, False)),
    ],
)
def test_a_name_says_what_it_is(name: str, kind: Kind):
    assert kind_of(name) == kind


def test_who_is_in_a_channel():
    table = ChannelTable()
    assert table.join("c", "1")
    assert not table.join("c", "1")
    assert table.join("c", "2")
    assert table.join("d", "1")
    assert (table.sockets("c"), table.count("c"), table.channels_of("1")) == (["1", "2"], 2, {"c", "d"})
    assert table.channels() == ["c", "d"]
    assert table.leave("c", "3") is None
    assert table.leave("x", "1") is None
    assert [table.leave("c", "1"), table.leave("c", "2"), table.leave("d", "1")] == [None] * 3
    assert (table.channels(), table.sockets("c"), table.count("c"), table.channels_of("1")) == (
        [],
        [],
        0,
        set(),
    )


def test_a_member_is_there_as_long_as_one_of_its_sockets():
    table = ChannelTable()
    for socket in "123":
        table.join("presence-c", socket)
    assert table.join_member("presence-c", "1", "ann", {"n": 1})
    assert not table.join_member("presence-c", "2", "ann", {"n": 2})
    assert table.join_member("presence-c", "3", "bob", None)
    assert table.members("presence-c") == {"ann": {"n": 1}, "bob": None}
    assert [table.member_of("presence-c", socket) for socket in "1239"] == ["ann", "ann", "bob", None]
    assert table.sockets_of("ann") == {"1", "2"}
    assert table.leave("presence-c", "1") is None
    gone = table.leave("presence-c", "2")
    assert gone is not None
    assert gone.user_id == "ann"
    assert table.members("presence-c") == {"bob": None}
    table.leave("presence-c", "3")
    assert table.members("presence-c") == {}


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc"), st.sampled_from("1234")), max_size=60))
def test_empty_channels_leave_no_trace(steps: list[tuple[bool, str, str]]):
    table = ChannelTable()
    model: set[tuple[str, str]] = set()
    for joins, channel, socket in steps:
        if joins:
            assert table.join(channel, socket) is ((channel, socket) not in model)
            table.join_member(channel, socket, f"u{socket}", None)
            model.add((channel, socket))
        else:
            table.leave(channel, socket)
            model.discard((channel, socket))
        for each in "abc":
            inside = {one for where, one in model if where == each}
            assert set(table.sockets(each)) == inside
            assert set(table.members(each)) == {f"u{one}" for one in inside}
    for channel, socket in model:
        table.leave(channel, socket)
    assert all(not getattr(table, name) for name in vars(table))
