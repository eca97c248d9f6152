"""Which class plays which scenario. Worlds are imported when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from world.errors import ScenarioError, UnknownNameError
from world.model import Scenario, World


def _cloud(scenario: Scenario) -> World[Any]:
    from world.worlds.cloud import make

    return make(scenario)


def _cloudedge(scenario: Scenario) -> World[Any]:
    from world.worlds.cloudedge import make

    return make(scenario)


def _finops(scenario: Scenario) -> World[Any]:
    from world.worlds.finops import make

    return make(scenario)


def _aiops(scenario: Scenario) -> World[Any]:
    from world.worlds.aiops import make

    return make(scenario)


_MAKERS: dict[str, tuple[str, Callable[[Scenario], World[Any]]]] = {
    "cloud": ("A mechanistic cloud: queues, prices, watts, waste and incidents", _cloud),
    "cloudedge": ("Latency, cost and carbon of one fleet through crises", _cloudedge),
    "aiops": ("Incidents with a hidden cause to find, fix and stabilise", _aiops),
    "finops": ("An inventory to clean up, right-size and keep alive", _finops),
}


def world_titles() -> dict[str, str]:
    """World name → one line."""
    return {name: title for name, (title, _) in _MAKERS.items()}


def make_world(scenario: Scenario) -> World[Any]:
    """The world that plays a scenario.

    Raises:
        UnknownNameError: The scenario names a world that does not exist.
        ScenarioError: It contradicts itself, or masks a metric that this world does not measure.
    """
    entry = _MAKERS.get(scenario.world)
    if entry is None:
        raise UnknownNameError(
            f"scenario {scenario.name!r} names the world {scenario.world!r}",
            "there is no such world",
            f"Worlds: {', '.join(_MAKERS)}",
        )
    world = entry[1](scenario)
    _check_masks(scenario, [metric.name for metric in world.metrics])
    return world


def _check_masks(scenario: Scenario, metrics: Sequence[str]) -> None:
    """A misspelt mask would hide nothing, and nobody would notice."""
    for seat, names in scenario.masks.items():
        for name in names:
            if name not in metrics:
                raise ScenarioError(
                    f"scenario {scenario.name!r}: masks.{seat} names {name!r}",
                    "this world has no such metric",
                    f"Metrics: {', '.join(metrics)}",
                )
