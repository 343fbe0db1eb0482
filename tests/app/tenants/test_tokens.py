"""Tokens for sockets: of one tenant and one thread, and nothing of a tenant is made for a wrong one."""

from __future__ import annotations

import pytest

from runcast.app import Cast, NotFound
from runcast.app.tenants.tokens import secret_of, watch_token, watched
from runcast.broadcast import issue_token


@pytest.mark.parametrize("tenant", ["", "acme"])
async def test_a_token_opens_its_thread_in_its_tenant(tenant: str) -> None:
    async with Cast.open("memory://") as host:
        found = watched(host, watch_token(host.for_tenant(tenant), "t1"))
        assert found is not None
        assert (found[0].tenant, found[1]) == (tenant, "t1")
        assert watched(host, watch_token(host.for_tenant(tenant), "t1", seconds=0)) is None


async def test_a_wrong_token_opens_nothing_and_makes_no_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Cast.open("memory://") as host:
        monkeypatch.setattr(host, "for_tenant", lambda _: pytest.fail("a tenant was made"))
        assert host.hub is not None
        for token in ("x.y", issue_token(host.hub.secret, "t1", expires=2**40, realm="acme")):
            assert watched(host, token) is None


async def test_without_a_hub_there_are_no_tokens() -> None:
    async with Cast.open("memory://", watch=False) as host:
        assert watched(host, "x.y") is None
        with pytest.raises(NotFound, match="no hub"):
            watch_token(host, "t1")


def test_the_host_and_each_tenant_have_secrets_of_their_own() -> None:
    assert secret_of("secret", "") == "secret"
    assert len({secret_of("secret", each) for each in ("", "acme", "beta")}) == 3
