"""What clients are shown of an agent: its name, capabilities and schemas, as JSON and without secrets.

Knows adapters; does not know routes.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Container, Iterable
from typing import Any, NotRequired

from typing_extensions import TypedDict

from runcast.adapters import Adapter, AdapterError, AgentSchemas, Askable, Described
from runcast.slim import Redactor
from runcast.slim.values.type_guards import as_object, is_list, is_object

logger = logging.getLogger("runcast.app")
PROMPT = re.compile("prompt|instruction", re.IGNORECASE)  # clients are not shown them
PATIENCE = 5.0  # seconds for an agent elsewhere to describe itself


class AgentDescription(TypedDict):
    """An agent as JSON."""

    name: str
    description: NotRequired[str]
    capabilities: dict[str, Any]
    schemas: AgentSchemas


def described(adapter: Adapter, redactor: Redactor | None, *, brief: bool = False) -> AgentDescription:
    """What is known of the agent without asking for it elsewhere; `brief` without its schemas."""
    found: Any = adapter.capabilities()
    capabilities: dict[str, Any] = {}
    if found is not None:
        capabilities = found.model_dump(mode="json", by_alias=True, exclude_none=True)
    schemas = adapter.schemas() if isinstance(adapter, Described) and not brief else AgentSchemas()
    row = AgentDescription(
        name=adapter.name, capabilities=capabilities, schemas=_without_secrets(schemas, redactor)
    )
    about = as_object(capabilities.get("identity")).get("description")
    return {**row, "description": about} if about else row


async def all_described(
    adapters: Iterable[Adapter], redactor: Redactor | None, *, brief: Container[str] = ()
) -> list[AgentDescription]:
    """The same of several agents, in a thread: schemas may take long at their first use. `brief` names those without."""
    every = list(adapters)
    return await asyncio.to_thread(
        lambda: [described(each, redactor, brief=each.name in brief) for each in every]
    )


async def asked(adapter: Adapter, redactor: Redactor | None) -> AgentDescription:
    """The same, after an agent elsewhere was asked; one that does not answer is described as far as it is known."""
    if isinstance(adapter, Askable):
        try:
            async with asyncio.timeout(PATIENCE):
                await adapter.ask()
        except (AdapterError, TimeoutError) as error:
            logger.warning(
                "agent %s does not describe itself: %s", adapter.name, str(error) or "no answer in time"
            )
    return (await all_described([adapter], redactor))[0]


def _without_secrets(value: Any, redactor: Redactor | None) -> Any:
    """The schemas without the defaults that hold secrets: a program may take a default from its environment."""
    if redactor is None:
        return value
    if is_list(value):
        return [_without_secrets(each, redactor) for each in value]
    if not is_object(value):
        return value
    kept: dict[str, Any] = {name: _without_secrets(each, redactor) for name, each in value.items()}
    if is_object(fields := kept.get("properties")):
        kept["properties"] = {name: _safe(name, each, redactor) for name, each in fields.items()}
    return kept


def _safe(name: str, field: Any, redactor: Redactor) -> Any:
    """A field's schema, without a default that would be redacted under its name, or that is a prompt."""
    if not is_object(field) or "default" not in field:
        return field
    given = {name: field["default"]}
    return (
        field
        if redactor.value(given) == given and not PROMPT.search(name)
        else {key: field[key] for key in field if key != "default"}
    )
