"""A house's names load when they are first asked for, and read as if they had been imported at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

import runcast.slim
from runcast.slim.on_demand import on_demand

FIRST_USE = """
import sys
import runcast.slim
before = {each for each in sys.modules if each.startswith("runcast.")}
from runcast.slim import SlimError
after = {each for each in sys.modules if each.startswith("runcast.")}
print(sorted(after - before), "SlimError" in vars(runcast.slim), "fold" in vars(runcast.slim), "fold" in dir(runcast.slim))
"""


def test_a_name_loads_its_own_module_and_stays():
    done = subprocess.run([sys.executable, "-c", FIRST_USE], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "['runcast.slim.errors'] True False True"


def test_an_unknown_name_is_an_attribute_error_that_has_it():
    with pytest.raises(AttributeError, match=r"module 'runcast.slim' has no attribute 'nonsense'"):
        runcast.slim.nonsense  # type: ignore[attr-defined]  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    with pytest.raises(ImportError, match="nonsense"):
        from runcast.slim import nonsense  # type: ignore[attr-defined]  # noqa: F401  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]


def test_a_module_without_the_name_is_an_error_too():
    load, _ = on_demand("runcast.slim", {"errors": "Missing"})
    with pytest.raises(AttributeError, match="Missing"):
        load("Missing")


def test_a_submodule_is_still_imported_from_its_package():
    from runcast.slim import errors

    assert errors.__name__ == "runcast.slim.errors"
