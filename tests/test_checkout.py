"""The four packages are this checkout's own, not something else of that name."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.unit
@pytest.mark.parametrize("name", ["world", "policies", "agents", "orchestrator"])
def test_a_package_comes_from_this_checkout(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__file__ is not None
    assert Path(module.__file__).resolve().parent.parent == ROOT
