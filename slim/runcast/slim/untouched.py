"""The fields of the protocol that redaction leaves alone: names of things, never content.

Opaque provider values must come back as they were. Knows the names of fields; does not know what a secret is.
"""

from __future__ import annotations

__all__ = ["UNTOUCHED"]

UNTOUCHED = frozenset(
    {
        *("type", "role", "id", "message_id", "tool_call_id", "thread_id", "run_id", "parent_run_id", "op"),
        *(
            "parent_message_id",
            "subagent_run_id",
            "parent_subagent_run_id",
            "parent_tool_call_id",
            "entity_id",
        ),
        *(
            "interrupt_id",
            "interrupt_ids",
            "pending_tool_call_ids",
            "encrypted_value",
            "mime_type",
            "timestamp",
        ),
        *("protocol_version", "expires_at", "subtype", "usage"),
    }
)
