"""What the protocol has no event for, as names and values of CUSTOM events.

Knows the fields of ADK's events; does not know the stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from runcast.adapters.adk.plain_values import plain
from runcast.slim.folding.run_metadata import METADATA_KEY

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.genai import types


def extras(event: Event) -> Iterator[tuple[str, Any]]:
    """Grounding, citations, artifacts and the like of one complete event."""
    actions = event.actions
    if event.grounding_metadata is not None:
        yield "adk.grounding", _dump(event.grounding_metadata)
    if event.citation_metadata is not None:
        yield "adk.citations", _dump(event.citation_metadata)
    own = {key: value for key, value in (event.custom_metadata or {}).items() if key != METADATA_KEY}
    if own:
        yield "adk.custom_metadata", plain(own)
    if actions.artifact_delta:
        yield "adk.artifacts", dict(actions.artifact_delta)
    if actions.compaction is not None:
        bounds = actions.compaction
        yield "adk.compaction", {"from": bounds.start_timestamp, "to": bounds.end_timestamp}
    if actions.rewind_before_invocation_id:
        yield "adk.rewind", {"before_invocation_id": actions.rewind_before_invocation_id}


def media(index: int, part: types.Part) -> dict[str, Any]:
    """The type, size and place of a picture or file, never its bytes."""
    if part.inline_data is not None:
        data = part.inline_data
        found = {"mime_type": data.mime_type, "size": len(data.data or b""), "name": data.display_name}
    else:
        link = part.file_data
        assert link is not None
        found = {"mime_type": link.mime_type, "uri": link.file_uri, "name": link.display_name}
    return {"index": index} | {name: value for name, value in found.items() if value is not None}


def _dump(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)
