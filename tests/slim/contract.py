"""The contract of the evidence artifact, checked rule by rule."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

from runcast.slim.evidence import canonical


def held(artifact: dict[str, Any]) -> None:
    """Whether the artifact keeps every rule."""
    required = [
        "schema",
        "framework",
        "surface",
        "thread_id_ref",
        "run_id_ref",
        "started_at",
        "messages",
        "terminal_event",
    ]
    optional = ["finished_at", "parent_run_id_ref", "error_code", "error_message"]
    assert list(artifact)[:8] == required
    assert set(artifact) <= {*required, *optional}
    assert artifact["schema"] == "ag-ui.compacted-message-snapshot.export.v1"
    assert (artifact["framework"], artifact["surface"]) == ("ag_ui", "compacted_message_snapshot_artifact")
    assert artifact["messages"]
    ids = [row["id"] for row in artifact["messages"]]
    assert len(set(ids)) == len(ids)
    for ref in [
        *ids,
        *(artifact[key] for key in ("thread_id_ref", "run_id_ref", "parent_run_id_ref") if key in artifact),
    ]:
        assert 0 < len(ref) <= 96
        assert "://" not in ref
    for row in artifact["messages"]:
        assert list(row) in (["id", "role", "content"], ["id", "role", "content", "name"])
        assert row["role"] in {"assistant", "developer", "system", "tool", "user"}
        assert 0 < len(row["content"]) <= 400
        assert row["content"] == row["content"].strip()
        assert len(row.get("name", "")) <= 60
    failed = artifact["terminal_event"] == "RUN_ERROR"
    assert failed or artifact["terminal_event"] == "RUN_FINISHED"
    assert ("error_message" in artifact) is failed
    assert len(artifact.get("error_message", "")) <= 200
    assert len(artifact.get("error_code", "")) <= 48
    times = [artifact[key] for key in ("started_at", "finished_at") if key in artifact]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z", time) for time in times)
    assert sorted(map(datetime.fromisoformat, times)) == list(map(datetime.fromisoformat, times))
    assert None not in artifact.values()
    assert json.loads(canonical(artifact)) == artifact
