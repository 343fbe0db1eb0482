"""A checkpointer as it is without what one run has stored since another left the thread.

A worker that slept past its lease may store more when it wakes. Named in a run's config, a checkpoint behind those runs its
finished tasks again; read by this, it is the newest. Knows checkpointers; does not know which run is late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from runcast.slim.values.type_guards import as_mapping


@dataclass(frozen=True, slots=True)
class _Late:
    """What is late: of this run (as `key` of a checkpoint's metadata), and after `left`. Ids of checkpoints are in the order
    of time."""

    key: str
    run: str
    left: str

    def is_before(self, found: Any) -> bool:
        return bool(found.checkpoint["id"] <= self.left)

    def is_told(self, found: Any, config: Mapping[str, Any]) -> bool:
        """Whether this one stands, whatever is below it."""
        if (
            found is None
            or as_mapping(config.get("configurable")).get("checkpoint_id")
            or self.is_before(found)
        ):
            return True
        return as_mapping(found.metadata).get(self.key) not in (self.run, None)

    def standing(self, later: Sequence[Any]) -> Any:
        """Of these, the newest first, the newest one that stands, on no late one either."""
        late, stands = set[str](), None
        for each in reversed(later):
            under = as_mapping(as_mapping(each.parent_config).get("configurable")).get("checkpoint_id")
            own = not self.is_before(each) and as_mapping(each.metadata).get(self.key) == self.run
            if own or under in late:
                late.add(each.checkpoint["id"])
            else:
                stands = each
        return stands


def without_late(saver: Any, key: str, run: str, left: str) -> Any:
    """The checkpointer without what the run (as `key` of a checkpoint's metadata) stored after the checkpoint `left`, and
    without what was put on top of that, as `update_state` does."""
    shadow, get_tuple, aget_tuple = copy(saver), saver.get_tuple, saver.aget_tuple
    late = _Late(key, run, left)

    def standing(config: Mapping[str, Any]) -> Any:
        found, later = get_tuple(config), list[Any]()
        if late.is_told(found, config):
            return found
        for each in saver.list(config):
            later.append(each)
            if late.is_before(each):
                break
        return late.standing(later)

    async def astanding(config: Mapping[str, Any]) -> Any:
        found, later = await aget_tuple(config), list[Any]()
        if late.is_told(found, config):
            return found
        async for each in saver.alist(config):
            later.append(each)
            if late.is_before(each):
                break
        return late.standing(later)

    shadow.get_tuple, shadow.aget_tuple = standing, astanding
    return shadow


def is_update(found: Any) -> bool:
    """Whether a program stored this by `update_state`."""
    return found is not None and as_mapping(found.metadata).get("source") == "update"
