"""A cloud scenario with a real grid or real demand in it: a copy, never the original.

The copy keeps every number of its base but the series. It says in its description where the series
came from, and it is checked as the world will check it before it is written.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from world.errors import ConfigError
from world.importers.scenario_writer import check_output, write_scenario
from world.model import Scenario
from world.scenarios.loader import load_scenario
from world.worlds.cloud.services import CATALOGUE
from world.worlds.cloud.settings import Settings

BASE: Final = "cloud/medium"
"""Scenario that a series is put into where none is named."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,119}")
_MOST_DESCRIPTION: Final = 4_000


@dataclasses.dataclass(frozen=True, slots=True)
class Destination:
    """Where a series goes.

    Attributes:
        base: The scenario that is copied.
        output: The file that is written.
        name: Name of the copy.
    """

    base: Scenario
    output: Path
    name: str

    @property
    def regions(self) -> tuple[str, ...]:
        """Regions that a seed of it may have, the home region first."""
        params = Settings.of(self.base).params
        return tuple(dict.fromkeys((params.home_region, *params.regions, *params.region_pool)))

    @property
    def services(self) -> tuple[str, ...]:
        """Its services."""
        return Settings.of(self.base).params.services

    @property
    def services_with_users(self) -> tuple[str, ...]:
        """Its services that are no batch work."""
        return tuple(name for name in self.services if not CATALOGUE[name].batch)

    @property
    def hours(self) -> float:
        """Length of an episode, h."""
        return self.base.horizon * Settings.of(self.base).dt_h


def destination(
    into: str | None, output: Path | None, name: str | None, inputs: Sequence[Path]
) -> Destination | None:
    """Where a series goes, or None where it is only reported.

    Args:
        into: Name or file of a cloud scenario; None is `BASE`.
        output: The copy to write; None writes nothing.
        name: Name of the copy; None makes one from the file's.
        inputs: Files that must not be overwritten.

    Raises:
        UnknownNameError: There is no such scenario.
        ScenarioError: The scenario is malformed.
        ConfigError: It is of another world, or the output cannot be used.
    """
    if output is None:
        if into is not None or name is not None:
            raise ConfigError(
                f"{'--into' if into is not None else '--name'} is given without --output",
                "the scenario with the series in it is a new file",
                "Type -o SCENARIO.toml as well",
            )
        return None
    base = load_scenario(into or BASE)
    if base.world != "cloud":
        raise ConfigError(
            f"scenario {base.name!r} is of the world {base.world!r}",
            "only the cloud world takes hourly series",
            f"Give a cloud scenario, for example --into {BASE}",
        )
    Settings.of(base)
    read = [*inputs, *([Path(into)] if into and Path(into).is_file() else [])]
    check_output(output, read)
    return Destination(base, output, _name(name, output))


def _name(given: str | None, output: Path) -> str:
    if given is not None:
        if not _NAME.fullmatch(given):
            raise ConfigError(
                f"the name {given[:60]!r} cannot be used",
                "names are 1 to 120 letters, digits, dots, dashes, underscores and slashes",
                "Choose such a name",
            )
        return given
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", output.stem)[:100].lstrip("-._")
    return f"import/{stem or 'cloud'}"


def write_with(
    where: Destination, params: Mapping[str, Any], subject: str, provenance: str
) -> Scenario:
    """Write the copy with other params.

    Args:
        where: Base, output and name.
        params: Params to put in.
        subject: What the series is of, for example ``grid of us-west-1``; a line of the
            description about the same subject is replaced.
        provenance: Where it came from.

    Raises:
        ScenarioError: The world refuses the result.
        ConfigError: The file cannot be written.
    """
    start = f"Imported {subject}: "
    kept = [
        line
        for line in where.base.description.strip().splitlines()
        if line.strip() and not line.startswith(start)
    ]
    scenario = dataclasses.replace(
        where.base,
        name=where.name,
        description="\n".join([*kept, start + provenance])[:_MOST_DESCRIPTION],
        params={**where.base.params, **params},
    )
    Settings.of(scenario)
    write_scenario(scenario, where.output)
    return scenario
