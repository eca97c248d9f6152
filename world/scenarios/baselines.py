"""Published baselines: mean scores of fixed policies on raw seeds of a scenario.

The file is written by ``make baselines`` and bound to the scenario's digest: where the scenario
has changed since, there are no baselines rather than wrong ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from world.errors import ScenarioError
from world.model import Scenario
from world.scenarios.loader import FOLDER

BASELINES_FILE = FOLDER / "cloud" / "baselines.json"
_NONE: Mapping[str, float] = MappingProxyType({})


@lru_cache(maxsize=1)
def _published() -> Mapping[str, Any]:
    try:
        found = json.loads(BASELINES_FILE.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ScenarioError(
            f"{BASELINES_FILE} cannot be read", str(error), "Write it anew: make baselines"
        ) from error
    return found if isinstance(found, dict) else {}


def baselines_of(scenario: Scenario) -> Mapping[str, float]:
    """Policy → mean score of the scenario; empty where none was published for just this one.

    Raises:
        ScenarioError: The shipped file is damaged.
    """
    entry = _published().get(scenario.name)
    if not entry or entry.get("digest") != scenario.digest:
        return _NONE
    return {name: float(part["total"]["mean"]) for name, part in entry["policies"].items()}
