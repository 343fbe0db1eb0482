"""Planted secrets, in the ways they are met. Each is a text and the part of it that must not survive."""

from __future__ import annotations

import json

PEM_BODY = "MIIEpAIBAAKCAQEA7bq0\nq83ZzXk+/w==\n"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
PASSWORD = "hunter2-Xyzzy"

# Written in pieces, so that no scanner of repositories takes them for real.
BY_FORM = {
    "openai": "sk-" + "proj-abcdefghij0123456789",
    "anthropic": "sk-" + "ant-api03-abcdefghijklmnop",
    "stripe": "sk_" + "live_4eC39HqLyjWDarjtT1zdp7dc",
    "github": "ghp_" + "abcdefghijklmnopqrstuvwxyz0123",
    "github fine": "github_" + "pat_11ABCDEFG0abcdefghijkl",
    "slack": "xoxb-" + "123456789012-abcdefghij",
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "google": "AIza" + "SyA-abcdefghijklmnopqrstuvwxyz01234",
    "gitlab": "glpat-" + "abcdefghij0123456789",
    "npm": "npm_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "sendgrid": "SG." + "abcdefghijklmnopqrst.abcdefghijklmnopqrstuv",
    "jwt": JWT,
}
BY_NAME = {
    "assignment": (f"password: {PASSWORD} and so on", PASSWORD),
    "environment": (f"OPENAI_API_KEY={PASSWORD}\n", PASSWORD),
    "json": (json.dumps({"apiKey": PASSWORD, "n": 1}), PASSWORD),
    "json in json": (json.dumps({"body": json.dumps({"client_secret": PASSWORD})}), PASSWORD),
    "json thrice": (json.dumps({"a": json.dumps({"b": json.dumps({"token": PASSWORD})})}), PASSWORD),
    "escaped quote": (json.dumps({"password": f'{PASSWORD}"tail'}), f"{PASSWORD}\\"),
    "number": (json.dumps({"cvv": 73_519, "x": 2}), "73519"),
    "object": (json.dumps({"credentials": {"user": "u", "pass": [PASSWORD, "}"]}, "b": 1}), PASSWORD),
    "nested object": (json.dumps({"x": json.dumps({"secrets": {"a": [PASSWORD]}})}), PASSWORD),
    "bearer": (f"Authorization: Bearer {PASSWORD}0123456789", PASSWORD),
    "bearer alone": (f"use Bearer {PASSWORD}0123456789 for it", PASSWORD),
    "basic": (f'curl -H "Authorization: Basic {PASSWORD}=="', PASSWORD),
    "cookie": (f"Cookie: sid={PASSWORD}; theme=dark\r\nHost: x", PASSWORD),
    "url": (f"postgresql://app:{PASSWORD}@db.example/x", PASSWORD),
    "query": (f"https://api.example/v1?access_token={PASSWORD}&page=2", PASSWORD),
    "yaml": (f"  dbPassword: {PASSWORD}\n", PASSWORD),
    "python": (f"{{'secret_key': '{PASSWORD}'}}", PASSWORD),
    "private key": (f"-----BEGIN RSA PRIVATE KEY-----\n{PEM_BODY}-----END RSA PRIVATE KEY-----\n", PEM_BODY),
    "private key in json": (
        json.dumps({"k": f"-----BEGIN PRIVATE KEY-----\n{PEM_BODY}-----END PRIVATE KEY-----"}),
        "MIIEpAIBAAKCAQEA7bq0",
    ),
}
PLANTED = {name: (f"so {secret} is", secret) for name, secret in BY_FORM.items()} | BY_NAME

# Looks like a secret from afar, and is none.
HARMLESS = (
    "max_tokens: 500, total_tokens=1200",
    '{"next_page_token": "abcdef", "input_tokens": 12, "eos_token": "</s>"}',
    "Token: a unit of text. The password was changed.",
    "the basic idea, bearer of bad news",
    "https://example.com/a/b?x=1 and user@host",
    '{"password": null, "token": "", "secret": true}',
    "a task-oriented desk-lamp; risk-averse",
    "session_id=abc123, checkpoint_id: 1ef-42",
    "AKIA is a prefix; eyJ too",
    "password:",
    '"token":',
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "漢字 👩‍👩‍👧 \ud83d",
)
