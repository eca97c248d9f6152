"""What looking finds: noisy evidence on incidents, never the truth itself.

Detecting says of every service, with false alarms, whether something is wrong. Analysing adds a
log-likelihood to one cause of one service. Evaluating sets the suspicion on one resource. Evidence
fades, so that an old incident does not explain a new one.
"""

from __future__ import annotations

import numpy as np

from world import noise
from world.worlds.cloud import schema as names
from world.worlds.cloud.rules import Sheet
from world.worlds.cloud.state import Array, Floats, State

HIT = 0.85
"""Detection: odds to see something where something is wrong."""
FALSE_ALARM = 0.1
"""Detection: odds to see something where nothing is wrong."""
RIGHT = 0.75
"""Analysis: odds of the right cause; otherwise any other, alike."""
EXAMINED_HIT, EXAMINED_FALSE = 0.92, 0.04
"""Examination of one resource: odds to find what is there, and what is not."""
FADES_PER_STEP = 0.97
"""Evidence kept from step to step; assumed."""
_GAIN = float(np.log(RIGHT / ((1.0 - RIGHT) / len(names.CAUSES))))

_DETECT = noise.channel("cloud.detect")
_ROWS = noise.channel("cloud.detect.rows")
_ANALYSE = noise.channel("cloud.analyse")
_EVALUATE = noise.channel("cloud.evaluate")


def _draws(after: State, sheet: Sheet, stream: int, entities: Array) -> Floats:
    """Uniforms [4, N, n] for N actions and n entities, or [4, N] for one entity each."""
    world = sheet.world if entities.ndim == 1 and len(entities) == len(sheet.world) else None
    if world is not None:
        return noise.uniforms(
            after.seeds[world], entities, stream, after.step, after.replica[world]
        )
    return noise.uniforms(
        after.seeds[sheet.world][:, None], entities, stream, after.step,
        after.replica[sheet.world][:, None],
    )  # fmt: skip


def troubled(state: State) -> Array:
    """Services at which an active incident has its root, bool [B, S]."""
    columns, settings = state.columns, state.settings
    found = np.zeros((state.batch, settings.s), dtype=np.bool_)
    world, at = np.nonzero((columns["h.i.status"] == names.ACTIVE) & (columns["h.i.service"] >= 0))
    found[world, columns["h.i.service"][world, at]] = True
    return found


def cause_of(state: State) -> Array:
    """Cause of the active incident of each service; `HEALTHY` where there is none, int [B, S]."""
    columns, settings = state.columns, state.settings
    found = np.full((state.batch, settings.s), names.HEALTHY)
    world, at = np.nonzero((columns["h.i.status"] == names.ACTIVE) & (columns["h.i.service"] >= 0))
    found[world, columns["h.i.service"][world, at]] = columns["h.i.cause"][world, at]
    return found


def detect(after: State, sheet: Sheet) -> None:
    """Anomalies of all services, and of machines that behave oddly.

    Only what can be examined falls under suspicion: `evaluate` could never clear a volume or an
    address of a false alarm.
    """
    settings, columns = after.settings, after.columns
    wrong = troubled(after)[sheet.world]
    u = _draws(after, sheet, _DETECT, np.arange(settings.s, dtype=np.uint32)[None, :])[0]
    seen = u < np.where(wrong, HIT, FALSE_ALARM)
    after.own("s.anomaly")[sheet.world] = np.where(seen, HIT, FALSE_ALARM)
    rows = np.arange(settings.tiers, settings.rows, dtype=np.uint32)
    v = _draws(after, sheet, _ROWS, rows[None, :])[0]
    odd = columns["h.compromised"][sheet.world][:, settings.tiers :] > 0
    machine = np.isin(columns["kind"][sheet.world][:, settings.tiers :], names.EXAMINED_KINDS)
    machine &= columns["state"][sheet.world][:, settings.tiers :] != names.TERMINATED
    seen = machine & (v < np.where(odd, HIT, 0.005))
    suspicion = after.own("suspicion")
    block = suspicion[sheet.world, settings.tiers :]
    suspicion[sheet.world, settings.tiers :] = np.where(seen, np.maximum(block, 0.5), block)


def analyse(after: State, sheet: Sheet) -> None:
    """Evidence on the cause of one service's trouble, and on whether the root is its own."""
    u = _draws(after, sheet, _ANALYSE, sheet.target)
    truth = cause_of(after)[sheet.world, sheet.target]
    wrong = np.floor(u[1] * len(names.CAUSES)).astype(np.int64)
    wrong = np.where(wrong >= truth, wrong + 1, wrong)
    told = np.where(u[0] < RIGHT, truth, wrong)
    width = len(names.CAUSES) + 1
    after.own(names.EVIDENCE_COLUMN)[sheet.world, sheet.target * width + told] += _GAIN
    own = u[2] < np.where(truth == names.HEALTHY, 1.0 - HIT, HIT)
    after.own("s.own_fault")[sheet.world, sheet.target] = np.where(own, HIT, 1.0 - HIT)
    right = (told == truth) & (truth != names.HEALTHY)
    if right.any():
        known = after.own("h.i.known_step")
        columns = after.columns
        for world, service in zip(sheet.world[right], sheet.target[right], strict=True):
            hit = (
                (columns["h.i.status"][world] == names.ACTIVE)
                & (columns["h.i.service"][world] == service)
                & (known[world] < 0)
            )
            known[world, hit] = after.step


def evaluate(after: State, sheet: Sheet) -> None:
    """Suspicion on one machine or database."""
    settings, columns = after.settings, after.columns
    database = sheet.target < settings.queues
    service = np.where(database, sheet.target - settings.pools, 0)
    corrupt = database & (columns["h.s.corrupt"][sheet.world, service] > 0)
    guilty = corrupt | (columns["h.compromised"][sheet.world, sheet.target] > 0)
    u = _draws(after, sheet, _EVALUATE, sheet.target)[0]
    found = u < np.where(guilty, EXAMINED_HIT, EXAMINED_FALSE)
    after.own("suspicion")[sheet.world, sheet.target] = np.where(found, 0.9, 0.1)


def fade(after: State) -> None:
    """Let evidence age by one step."""
    column = after.columns[names.EVIDENCE_COLUMN]
    if column.any():
        after.columns[names.EVIDENCE_COLUMN] = column * FADES_PER_STEP
