"""What counts as an agent, and what becomes of an adapter from before `reconciles_history` was part of the protocol."""

from __future__ import annotations

from typing import Any

import pytest

from runcast.adapters import Adapter
from runcast.app import as_adapter


class Earlier:
    name = "earlier"

    def run(self, input: Any, *, resume: Any = None) -> Any: ...

    async def stop(self, run_id: str, *, hard: bool = False) -> None: ...

    def capabilities(self) -> Any: ...


def test_an_adapter_that_does_not_say_whether_it_reconciles_history_is_taken_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="Earlier has no `reconciles_history`: add it"):
        adapter = as_adapter(Earlier())
    assert isinstance(adapter, Adapter)
    assert adapter.reconciles_history is False
