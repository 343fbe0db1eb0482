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
            'return f"{address}/?token={self.token}" if self.local else address',
            'return f"{address}/?token={self.token}"',
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
)
