"""The faults of `make mutants`: the text of each stands in the code, else it is tried no more and nobody notices."""

from __future__ import annotations

from importlib import import_module

from tests.mutants.__main__ import AREAS
from tests.mutants.fault import Fault


def test_every_fault_can_be_put_in() -> None:
    faults: list[Fault] = [each for area in AREAS for each in import_module(f"tests.mutants.{area}").FAULTS]
    assert [each.path for each in faults if each.applied() == each.sound()] == []
    assert len({(each.path, each.old, each.new) for each in faults}) == len(faults) > 500
