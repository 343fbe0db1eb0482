"""Faults of authorization: whoever may read, write, watch or stop something, and by which proof."""

from __future__ import annotations

from tests.mutants.fault import Fault, faults

HUB = "broadcast/runcast/broadcast/hub/"
TENANTS = "app/runcast/app/tenants/"

FAULTS: tuple[Fault, ...] = (
    *faults(
        TENANTS + "access_policy.py",
        ("if self.local and not self.holds_token(headers):", "if False:"),
        ("            return user is not STRANGER\n", "            return True\n"),
        (
            "(await answer if isinstance(answer, Awaitable) else answer) is True",
            "bool(await answer if isinstance(answer, Awaitable) else answer)",
        ),
        ('            raise NotAllowed("you belong to no tenant of this host")', '            return ""'),
        (
            'if scheme.lower() == "bearer" and same(bearer.strip(), self.token):',
            "if same(bearer.strip(), self.token):",
        ),
        ("name.startswith(COOKIE) and same(value, self.token)", "name.startswith(COOKIE)"),
        ("        if not from_here(address, headers):", "        if not is_loopback(address):"),
        ("        if not from_here(address, headers):", "        if False:"),
        (
            'return is_loopback(address) and is_loopback(host_name(headers.get("host", "")))',
            'return is_loopback(host_name(headers.get("host", "")))',
        ),
        ('host.endswith(".localhost")', 'host.endswith("localhost")'),
        (
            'in ("same-origin", "none")\n    if',
            'in ("same-origin", "none", "same-site", "cross-site")\n    if',
        ),
        (
            '        return urlsplit(origin).netloc == headers.get("host")',
            '        return urlsplit(origin).hostname == host_name(headers.get("host", ""))',
        ),
        (
            '            logger.exception("authorize failed for thread %r", thread_id)\n            raise HubError',
            '            logger.exception("authorize failed for thread %r", thread_id)\n            return True\n            raise HubError',
        ),
        (
            "return f\"{address}{path or '/'}?token={self.token}\" if self.local else",
            "return f\"{address}{path or '/'}?token={self.token}\" if True else",
        ),
        ("if given is not None and not _TOKEN.fullmatch(given):", "if False:"),
        (
            "        return self._authorize is None\n\n    async def who",
            "        return False\n\n    async def who",
        ),
    ),
    *faults(
        TENANTS + "tokens.py",
        ("expires=int(time.time()) + seconds, realm", "expires=int(time.time()) + 1000 * seconds, realm"),
        ('return sign(secret, f"tenant:{tenant}") if tenant else secret', "return secret"),
        ("expires=int(time.time()) + seconds, realm=cast.tenant)", "expires=int(time.time()) + seconds)"),
        ("(host.for_tenant(tenant), thread_id)", "(host, thread_id)"),
    ),
    *faults(
        TENANTS + "cursors.py",
        ("    if not hmac.compare_digest(proof, _proof(key, sealed)):", "    if False:"),
        ("    plain += bytes(-len(plain) % BLOCK)\n", ""),
        ("    return bytes(one ^ other for one, other in zip(text, stream, strict=True))", "    return text"),
        ("    nonce = token_bytes(NONCE)\n", "    nonce = bytes(NONCE)\n"),
        ("(secret or _own_secret())", '(secret or "")'),
        ('hmac.digest(key, sealed, "sha256")', 'hmac.digest(b"", sealed, "sha256")'),
    ),
    *faults(
        HUB + "access.py",
        ("            return False\n        try:", "            return True\n        try:"),
        (
            "(await answer if isinstance(answer, Awaitable) else answer) is True",
            "bool(await answer if isinstance(answer, Awaitable) else answer)",
        ),
        ("        if not self._gate.own_page(headers):\n            return False\n", ""),
        (
            "return check_token(self._secret, token, session_id, now=now)",
            "return check_token(self._secret, token, session_id, now=0)",
        ),
        ("        if token is not None:", "        if token is not None and False:"),
    ),
    *faults(
        HUB + "signatures.py",
        ("    if not isinstance(given, str):\n        return False\n", ""),
        (
            '    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())',
            "    return given[:32] == expected[:32]",
        ),
        ("        if len(given) != len(query):", "        if False:"),
        ('        if not same(given.get("auth_key"), self._key):', "        if False:"),
        ("        if abs(now - int(stamp)) > self._window:", "        if now - int(stamp) > self._window:"),
        ("        if abs(now - int(stamp)) > self._window:", "        if int(stamp) - now > self._window:"),
        ("        if not _body_matches(given, body):", "        if False:"),
        ('        if not same(given.get("auth_signature"), expected):', "        if False:"),
        (
            '        if method != "GET" and not self._is_new',
            '        if method == "GET" and not self._is_new',
        ),
        ("            return now - came <= TWIN", "            return now - came <= TWIN + 5"),
        ("made < now - self._window]", "made < now]"),
        ("        if stamp <= self._floor:\n            return False\n", ""),
        (
            "            self._floor = min(self._seen)\n            self._count -= len(self._seen.pop(self._floor))",
            "            self._count -= len(self._seen.pop(min(self._seen)))",
        ),
        ("        return not body\n", "        return True\n"),
        ("return session_id if now < expires else None", "return session_id if now <= expires else None"),
        ('    if not same(proof, sign(secret, f"token:{coded}")):', "    if False:"),
        (
            "return read_token(secret, token, now=now) == session_id",
            "return read_token(secret, token, now=now) is not None",
        ),
        ('    return f"{method}\\n{path}\\n{pairs}"', '    return f"{method}\\n{pairs}"'),
        ('    return f"{method}\\n{path}\\n{pairs}"', '    return f"{path}\\n{pairs}"'),
        ("not 0 <= offset < 2**53", "not 0 <= offset < 2**80"),
    ),
    *faults(
        HUB + "gate.py",
        (
            '"*" not in limits.origins and origin not in limits.origins',
            "origin not in limits.origins and False",
        ),
        (">= limits.connections_per_address", "> limits.connections_per_address"),
        ("or connections >= limits.connections:", "or connections > limits.connections:"),
        (
            "        if left:\n            self._addresses[address] = left\n        else:\n            del self._addresses[address]",
            "        self._addresses[address] = left",
        ),
        ('            return urlsplit(origin).netloc == headers.get("host")', "            return True"),
        (
            "if origin is None or origin in self._limits.origins:",
            'if origin is None or origin in self._limits.origins or "*" in self._limits.origins:',
        ),
    ),
    *faults(
        HUB + "channels.py",
        ("channel_for(session_id, prefix=found) == channel:", "session_id:"),
        ('channel.startswith(("private-", "#server-to-user-"))', 'channel.startswith("private-")'),
        ("if session_id is None or _OLD_BASE64 + _base64(session_id) != coded:", "if session_id is None:"),
        ("        if member.sockets:\n            return None", "        pass"),
        ("    private = presence or channel", "    private = channel"),
    ),
    *faults(
        "app/runcast/app/http/routes.py",
        (
            "        if await request.cast.access.allows(request.user, thread_id):\n            status",
            "        if True:\n            status",
        ),
        ("            if await request.cast.access.allows(request.user, after):", "            if True:"),
        ("next=seal(secret, after) if more else None", "next=after if more else None"),
        (
            '    """A tool\'s whole result."""\n    await request.allow_thread(thread_id)\n',
            '    """A tool\'s whole result."""\n',
        ),
        ("    await request.allow_thread(given.thread_id)\n", ""),
        (
            '    """The host\'s numbers for Prometheus."""\n    await request.allow_host()\n',
            '    """The host\'s numbers for Prometheus."""\n',
        ),
        (
            '    thread_id = await request.allow_thread(identifier("thread_id", given))\n',
            '    thread_id = identifier("thread_id", given)\n',
        ),
    ),
    *faults(
        "app/runcast/app/http/http_messages.py",
        ("            if thread_id != self._thread:", "            if False:"),
        ("                    if size > most:", "                    if len(part) > most:"),
        ("        if body and not kind:", "        if False:"),
        ("    if count > MOST_VALUES:\n", "    if False:\n"),
        (
            "deadline.reschedule(began + BODY_TIMEOUT + size / SLOWEST_BODY)",
            "deadline.reschedule(asyncio.get_running_loop().time() + BODY_TIMEOUT)",
        ),
        ('    identifier("runId", given.run_id)\n', ""),
    ),
    *faults(
        "app/runcast/app/http/site.py",
        ('changes = row.method in ("POST", "DELETE") and', 'changes = row.method == "POST" and'),
        (
            'token = query_of(scope).get("token") if row.by_token else None',
            'token = query_of(scope).get("token")',
        ),
        ("        try:\n            self.site.admit(scope)\n", "        try:\n"),
        ("httponly=True", "httponly=False"),
        ("        if access.local and not access.holds_token(headers_of(scope)):", "        if False:"),
        (
            "        if changes and not own_origin(headers, site.options.cors):",
            "        if changes and False:",
        ),
    ),
    *faults(
        "app/runcast/app/tenants/tenant_adapter.py",
        ("await self._adapter.forget(self._prefix + thread_id)", "await self._adapter.forget(thread_id)"),
        (
            "return self.kept.rows(thread_id, prefix=self.prefix + prefix)",
            "return self.kept.rows(thread_id, prefix=prefix)",
        ),
        (
            "await self._adapter.stop(self._prefix + run_id, hard=hard)",
            "await self._adapter.stop(run_id, hard=hard)",
        ),
    ),
    *faults(
        "app/runcast/app/tenants/tenant_views.py",
        ("            if _is_idle(each):", "            if True:"),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/hub.py",
        (
            '        refusal = self.refuses(origin=headers.get("origin"), address=address)\n        if refusal is not None:\n            return refusal\n        socket = p.PlainSocket',
            "        socket = p.PlainSocket",
        ),
        (
            "if self.public and not kind_of(channel).private and valid_name(channel):",
            "if self.public and valid_name(channel):",
        ),
        ("        self._gate.leave(connection.address)\n", ""),
        (
            "        return envelope if named or known == envelope.session_id else None",
            "        return envelope",
        ),
        ("            self.dismiss(reader, p.FORGOTTEN", "            (reader, p.FORGOTTEN"),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/protocol.py",
        ("        if not kind.private and not self._public:\n            return self._refuse(channel)\n", ""),
        (
            'if self.user_id is None or channel != f"#server-to-user-{self.user_id}":',
            "if self.user_id is None:",
        ),
        ("channel not in self.channels or not kind_of(channel).private:", "not kind_of(channel).private:"),
        (
            "        if len(self.channels) >= self._limits.subscriptions:",
            "        if len(self.channels) > self._limits.subscriptions:",
        ),
        ('        if not same(data.get("auth"), expected):', "        if False:"),
        ("        return self._count > self._most", "        return False"),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/skins/pusher_api.py",
        (
            '                if refusal is not None:\n                    return refusal.status, {"error": refusal.sentence}\n',
            "",
        ),
        ("            and canonical(channel, prefix=prefix) == channel_for(claimed, prefix=prefix)\n", ""),
        (
            '        known = all(read_envelope(str(event.get("data"))) for event in events)',
            "        known = True",
        ),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/skins/asgi.py",
        ("            if len(text) > self.hub.limits.frame:", "            if False:"),
        ("        if size > LARGEST_BODY:", "        if False:"),
    ),
    *faults(
        "app/runcast/app/http/thread_routes.py",
        (
            '    """The messages that wait in a thread, the next one first."""\n    await request.allow_thread(thread_id)\n',
            '    """The messages that wait in a thread, the next one first."""\n',
        ),
        (
            '    """Change the words of a message that waits."""\n    await request.allow_thread(thread_id)\n',
            '    """Change the words of a message that waits."""\n',
        ),
        (
            '    """Take back a message that waits."""\n    await request.allow_thread(thread_id)\n',
            '    """Take back a message that waits."""\n',
        ),
        (
            'and refuse its id from then on."""\n    await request.allow_thread(thread_id)\n',
            'and refuse its id from then on."""\n',
        ),
        (
            'without what was taken back."""\n    await request.allow_thread(thread_id)\n',
            'without what was taken back."""\n',
        ),
        ("0 < len(title.strip()) <= LONGEST_TITLE", "0 < len(title) <= LONGEST_TITLE"),
    ),
    *faults(
        "app/runcast/app/runs/resume_entries.py",
        ("    if missing:\n", "    if False:\n"),
        ("    if len(set(given)) != len(given):\n", "    if False:\n"),
    ),
    *faults(
        "app/runcast/app/host/thread_reader.py",
        ("event.tool_call_id == call_id:", "call_id:"),
        (
            "        if kept is None or (run_id is not None and kept.run_id != run_id):",
            "        if kept is None:",
        ),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/signatures.py",
        ('if name != "auth_signature")', 'if name not in ("auth_signature", "auth_timestamp"))'),
        (
            'text = f"{socket_id}:{channel}" if channel_data is None else f"{socket_id}:{channel}:{channel_data}"',
            'text = f"{socket_id}:{channel}" if not channel_data else f"{socket_id}:{channel}:{channel_data}"',
        ),
        ("len(stamp) > 12", "False"),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/protocol.py",
        (
            '        if not same(data.get("auth"), expected):\n            return self._struck() or [',
            '        if not same(data.get("auth"), expected):\n            return [',
        ),
        ("self._tokens = min(float(rate), self._tokens +", "self._tokens = (self._tokens +"),
        ("or len(channel_data) > LARGEST_MEMBER", "or False"),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/memory/channel_memory.py",
        ("            self._erased[channel] = ring.epoch\n", ""),
        (
            "        if not sound(replay, position):\n",
            "        if False:\n",
        ),
        ("        key = (channel, position, until)", "        key = (channel, position, None)"),
    ),
    *faults(
        "broadcast/runcast/broadcast/hub/catchup.py",
        (
            "        if ring is None or (ring.epoch, ring.head) != (position.epoch, position.offset):",
            "        if ring is None or ring.head != position.offset:",
        ),
    ),
)
