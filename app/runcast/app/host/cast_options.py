"""The settings of a cast: as keyword arguments, which editors show, and as one frozen object.

Knows names and defaults; does not know what they do.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypedDict
from uuid import uuid4

from runcast.app.keeping.ages import Keep
from runcast.app.nodes.handover import OnBusy
from runcast.app.nodes.orphans import Recovery
from runcast.app.runs.run import Cadence
from runcast.app.tenants.access_policy import AccessPolicy
from runcast.app.webhooks.answer_links import AnswerLinks
from runcast.app.webhooks.webhook import Webhooks
from runcast.broadcast import BroadcastConfig, Hub
from runcast.slim import Redactor, SlimConfig


class CommonSettings(TypedDict, total=False):
    """Keyword arguments of both `Cast` and `Cast.open`; `CastOptions` has their meaning."""

    access: AccessPolicy | None
    answer_links: AnswerLinks | None
    cadence: Cadence | None
    config: BroadcastConfig | None
    door: AccessPolicy | None  # the former name of `access`
    keep: Keep | None
    keep_every: float
    keep_raw: Keep | None
    max_attempts: int
    max_runs: int
    max_tenants: int
    new_id: Callable[[], str]
    on_busy: OnBusy
    recover_every: float
    webhooks: Webhooks


class CastSettings(CommonSettings, total=False):
    """Keyword arguments of `Cast`."""

    recover: Recovery
    redactor: Redactor | None
    redis: str | None
    work: bool


class OpenSettings(CommonSettings, total=False):
    """Keyword arguments of `Cast.open`."""

    hub: Hub | None  # instead of one of its own
    lease_ms: int  # how long the runs of a dead node wait before another one may have them; 15,000
    redact: bool  # take secrets out before anything is kept; on
    # what the hub signs with: the same on all nodes, or tokens of one are refused by the others
    secret: str | None
    slim: SlimConfig | None  # the size of snapshots


def _new_id() -> str:
    return uuid4().hex


@dataclass(frozen=True, slots=True)
class CastOptions:
    """What a cast was made with; shared by the views of its tenants."""

    access: AccessPolicy = field(default_factory=AccessPolicy)  # who may ask for what, over HTTP and sockets
    answer_links: AnswerLinks | None = None  # in webhooks: links that answer a question
    cadence: Cadence = field(default_factory=Cadence)  # of snapshots during a run
    config: BroadcastConfig | None = None  # of envelopes
    keep: Keep | None = None  # how long a thread is kept after its last write, as "90d"; then it is forgotten
    keep_every: float = 3_600.0  # seconds between two searches for what is too old
    # how long an ended run keeps every event, as "7d"; then its compacted form alone
    keep_raw: Keep | None = None
    max_attempts: int = 10  # at one run, before it is not resumed any more
    max_runs: int = 100  # active in this process
    max_tenants: int = 1_000  # whose views are kept; idle ones go first
    new_id: Callable[[], str] = _new_id
    # what a message does while a run is active, where neither it nor its agent has a choice
    on_busy: OnBusy = "refuse"
    recover: Recovery = "off"  # what becomes of runs whose process died, for as long as this cast is open
    recover_every: float = 5.0  # seconds
    redactor: Redactor | None = None
    redis: str | None = None  # carries envelopes between the hubs of several nodes
    webhooks: Webhooks = ()  # addresses that hear of runs
    work: bool = True  # run agents here; otherwise runs are left to a node that does


def options_from(settings: CastSettings) -> CastOptions:
    """The options that keyword arguments mean; None stands for a default."""
    given: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
    door = given.pop("door", None)
    if door is not None and "access" not in given:
        warnings.warn("`door=` is called `access=` now", DeprecationWarning, stacklevel=3)
        given["access"] = door
    known = [each.name for each in fields(CastOptions)]
    if unknown := sorted(given.keys() - set(known)):
        raise TypeError(
            f"Cast has no setting {', '.join(map(repr, unknown))}: it has {', '.join(sorted(known))}. "
            "Settings that make the log and the hub, such as `watch`, belong to `Cast.open`."
        )
    return CastOptions(**given)
