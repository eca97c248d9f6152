"""What the room may imagine: states sampled from what was observed, never from the truth.

Public columns are taken as they are. Hidden ones come from what was measured (demand, errors,
utilisation) and from the ranges that the scenario publishes; whether something is needed, where
nobody knows, is a coin with the published share of needed rows. No incident is assumed that was not
seen in the measurements.
"""

from __future__ import annotations

import numpy as np

from world import noise
from world.errors import InadmissibleActionError
from world.model import Belief, History, Key
from world.worlds.cloud import schema as names
from world.worlds.cloud.generate import empty_columns
from world.worlds.cloud.settings import Settings
from world.worlds.cloud.state import BEFORE, EARLIER, NOW, Array, Floats, Measured, State
from world.worlds.cloud.tables import machines
from world.worlds.cloud.view import CloudInventory

_COIN = noise.channel("cloud.belief.essential")

NEEDED_PRIOR = 0.5
"""Odds that a row is needed of which nobody knows: about the share of needed rows."""


def believe(history: History, settings: Settings, samples: int, key: Key) -> Belief[State]:
    """See `World.believe`."""
    if samples < 0:
        raise InadmissibleActionError(
            f"{samples} belief samples were asked for",
            "there is no such number",
            "Ask for 0 or more",
        )
    view = history.now.inventory
    if not isinstance(view, CloudInventory):
        raise InadmissibleActionError("the observation is of another world", "", "Observe this one")
    count = max(samples, 1)
    columns = _public(settings, view, count)
    measured = _measured(history)
    _hidden(settings, columns, measured)
    if samples:
        rows = np.arange(settings.rows, dtype=np.uint32)
        replicas = np.arange(1, count + 1, dtype=np.uint64)[:, None]
        u = noise.uniforms(key.seed, rows[None, :], _COIN, key.step, replicas)[0]
        unknown = columns["essential"] == names.UNKNOWN
        columns["h.essential"][...] = np.where(unknown, u < NEEDED_PRIOR, columns["h.essential"])
    state = State(
        settings,
        np.full(count, key.seed, dtype=np.uint64),
        np.arange(1, count + 1, dtype=np.uint64),
        history.now.step,
        columns,
        mean_noise=samples == 0,
        ids=tuple(view.ids),
    )
    return Belief(state, batch=1, samples=count, mean_noise=samples == 0)


def _public(settings: Settings, view: CloudInventory, count: int) -> dict[str, Array]:
    columns = empty_columns(settings, count)
    for name, value in view.public.items():
        columns[name] = np.repeat(value, count, axis=0)
    return columns


def _measured(history: History) -> Floats:
    """The latest value that arrived of every measurement; NaN where none ever did."""
    value: Floats | None = None
    for seen in reversed(history.observations[-12:]):
        view = seen.inventory
        if not isinstance(view, CloudInventory):
            continue
        value = view.measured.copy() if value is None else np.where(
            np.isnan(value), view.measured, value
        )  # fmt: skip
        if not np.isnan(value).any():
            break
    if value is None:
        raise InadmissibleActionError("nothing was observed yet", "", "Observe the world first")
    return value


def _hidden(settings: Settings, columns: dict[str, Array], measured: Floats) -> None:
    """Hidden columns as the measurements suggest them."""
    where = Measured(settings)
    for name, value in (
        ("h.s.spike", 1.0), ("h.s.slow", 1.0), ("h.s.db_slow", 1.0), ("h.g.price", 1.0),
        ("h.g.ci", 1.0), ("h.g.up", 1), ("h.s.cut_at_step", -1000), ("h.i.row", -1),
        ("h.i.service", -1), ("h.i.slot", -1), ("h.i.victim", -1), ("h.i.status", names.MOOT),
        ("h.s.memory_base", 0.5),
    ):  # fmt: skip
        columns[name][...] = value
    for name in ("cpu_percent", "peak_cpu_percent", "memory_percent", "idle_hours"):
        columns[f"h.{name}"][...] = columns[name]
    columns["h.essential"][...] = columns["essential"] == names.YES
    rate = np.nan_to_num(measured[where.service("rps")])
    # The phase of the day is not known: demand is taken to stay where it is.
    columns["h.s.base_rps"][...] = rate
    flat = np.zeros_like(rate)
    hour = columns["w.start_hour_utc"]
    columns["h.s.phase_h"][...] = hour + flat
    columns["h.s.error"][...] = np.nan_to_num(measured[where.service("error_fraction")])
    columns["h.s.slow"][...] = _slowness(settings, columns, measured, rate)
    seen = np.nan_to_num(measured)
    for name in (NOW, BEFORE, EARLIER):
        columns[name] = np.repeat(seen[None, :], len(columns["w.harms"]), axis=0)


def _slowness(
    settings: Settings, columns: dict[str, Array], measured: Floats, rate: Floats
) -> Floats:
    """Factor on the service time that explains the utilisation measured, float64 [S]."""
    where = Measured(settings)
    busy = measured[where.service("cpu_fraction")]
    table = machines(settings.params.power_model)
    rows = slice(0, settings.pools)
    size = columns["size"][0, rows]
    power = columns["count"][0, rows] * table.vcpu[size] * table.speed[size]
    power = np.where(columns["weight"][0, rows] > 0, power, 0.0)
    capacity = np.add.reduce(power.reshape(settings.s, settings.regions), axis=-1)
    expected = rate * settings.per_service("tau_ms") * 1e-3 / np.maximum(capacity, 1e-9)
    level = 1.0 - 0.1 * columns["s.eco_level"][0]
    usable = (busy > 0.05) & (busy < 0.995) & (expected > 0) & ~settings.batch
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = np.where(usable, busy / expected * level, 1.0)
    slow: Floats = np.clip(np.nan_to_num(factor, nan=1.0), 0.5, 4.0)
    return slow
