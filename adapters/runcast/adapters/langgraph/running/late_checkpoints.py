"""A checkpointer as it is without what one run has stored since another left the thread.

A worker that slept past its lease may store more when it wakes. Named in a run's config, a checkpoint behind those runs its
finished tasks again; read by this, it is the newest. Knows checkpointers; does not know which run is late.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

from runcast.slim.values.type_guards import as_mapping


def without_late(saver: Any, key: str, run: str, left: str) -> Any:
    """The checkpointer without what the run (as `key` of a checkpoint's metadata) stored after the checkpoint `left`."""
    shadow, get_tuple, aget_tuple = copy(saver), saver.get_tuple, saver.aget_tuple

    def is_late(found: Any) -> bool:  # ids of checkpoints are in the order of time
        return found.checkpoint["id"] > left and as_mapping(found.metadata).get(key) == run

    def standing(config: Mapping[str, Any]) -> Any:
        found = get_tuple(config)
        if found is None or _is_named(config) or not is_late(found):
            return found
        return next((each for each in saver.list(config) if not is_late(each)), None)

    async def astanding(config: Mapping[str, Any]) -> Any:
        found = await aget_tuple(config)
        if found is None or _is_named(config) or not is_late(found):
            return found
        async for each in saver.alist(config):
            if not is_late(each):
                return each
        return None

    shadow.get_tuple, shadow.aget_tuple = standing, astanding
    return shadow


def _is_named(config: Mapping[str, Any]) -> bool:
    return bool(as_mapping(config.get("configurable")).get("checkpoint_id"))
