"""The protocol's fields that redaction leaves unchanged: names and ids, never content.

Opaque provider values must come back unchanged. Knows field names; does not know what a secret is.
"""

from __future__ import annotations

EXEMPT_FIELDS = frozenset(
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
