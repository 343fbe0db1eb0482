"""What can go wrong between a framework and the protocol, and its form in RUN_ERROR.

    AdapterError
    ├── InvalidInput        a RunAgentInput refused before the agent starts; nothing ran, nothing was stored
    ├── Unanswerable        the agent asks a question that no answer can reach
    ├── ThreadBusy          another run of this thread is still active in this adapter
    └── UnknownRun          stop or resume names a run that this adapter does not know

`failure` turns any exception into the code and the text of a RUN_ERROR. It does not know the frameworks:
each translator passes a table of its framework's own exception names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


class AdapterError(Exception):
    """Root of everything `runcast.adapters` raises on purpose."""

    code = "internal_error"

    def __init_subclass__(cls, *, code: str | None = None) -> None:
        super().__init_subclass__()
        cls.code = code or cls.code


class InvalidInput(AdapterError, code="invalid_input"):
    """The run's input was refused before the agent started; the message names what to send instead."""


class Unanswerable(AdapterError, code="unanswerable"):
    """The agent asks a question, but nothing keeps its place until the answer."""

    def __init__(self) -> None:
        super().__init__(
            "the graph asks a question, but without a checkpointer no answer can reach it: compile it with one, "
            "e.g. graph.compile(checkpointer=InMemorySaver())"
        )


class ThreadBusy(AdapterError, code="thread_busy"):
    """Another run of the same thread is active; wait for it, or stop it."""


class UnknownRun(AdapterError, code="unknown_run"):
    """No such run is active in this adapter."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The code and the text of a RUN_ERROR."""

    code: str
    message: str


# Codes are names of situations, the same for every framework. Looked up by class name along the MRO, so that
# no provider package has to be imported to be recognised.
CODES: Mapping[str, str] = {
    "CancelledError": "cancelled",
    "TimeoutError": "timeout",
    "TimeoutException": "timeout",
    "APITimeoutError": "timeout",
    "RateLimitError": "rate_limited",
    "ResourceExhausted": "rate_limited",
    "AuthenticationError": "unauthorized",
    "PermissionDeniedError": "unauthorized",
    "APIError": "model_error",
    "APIStatusError": "model_error",
    "APIConnectionError": "model_error",
    "ToolException": "tool_error",
    "ToolInvocationError": "tool_error",
}

LONGEST_MESSAGE = 500

# Values that must not ride out in an error text. Each alternative is anchored on a literal and has one unbounded
# run over a class that excludes its terminator, so matching stays linear.
_SECRETS = re.compile(
    r"(?P<scheme>\b(?:bearer|basic|token)\s+)[A-Za-z0-9._~+/=-]{6,}"
    r"|(?P<key>\b[\w-]{0,40}(?:key|token|secret|password|passwd|pwd|authorization|credential)s?[\"']?\s{0,3}[=:]\s{0,3}[\"']?)"
    r"[^\s\"',;&)}\]]+"
    r"|\b(?:sk|pk|rk|ghp|gho|ghs|xox[abprs]|AKIA|AIza)[-_]?[A-Za-z0-9_-]{8,}"
    r"|(?P<url>\b[a-z][a-z0-9+.-]{1,20}://)[^\s/@:]{1,200}:[^\s/@]{1,200}@",
    re.IGNORECASE,
)


def scrub(text: str, *, limit: int = LONGEST_MESSAGE) -> str:
    """Error text for display: likely secrets masked, one line, at most `limit` characters."""
    flat = " ".join(text[: limit * 8].split())
    masked = _SECRETS.sub(_mask, flat)
    return masked if len(masked) <= limit else masked[: limit - 3] + "..."


def _mask(match: re.Match[str]) -> str:
    kept = match["scheme"] or match["key"] or match["url"] or ""
    return f"{kept}[redacted]" + ("@" if match["url"] else "")


def describe(error: BaseException) -> str:
    """The type and the scrubbed text of an exception; of runcast's own errors the text alone."""
    text = scrub(str(error))
    name = type(error).__name__
    if isinstance(error, AdapterError) and text:
        return text
    return f"{name}: {text}" if text else name


def failure(
    error: BaseException, *, codes: Mapping[str, str] | None = None, default: str = "agent_error"
) -> Failure:
    """Name what happened, for RUN_ERROR: `codes` adds a framework's class names to the common ones."""
    message = describe(error)
    if isinstance(error, AdapterError):
        return Failure(error.code, message)
    for cls in type(error).__mro__:
        code = (codes or {}).get(cls.__name__) or CODES.get(cls.__name__)
        if code is not None:
            return Failure(code, message)
    return Failure(default, message)
