"""The price of spot machines: a share of on demand that moves by the hour, seen by everybody.

A random walk of the logarithm between bounds, drawn per world, region and full hour. The best
forecast of such a price is the price of now, so imagined worlds keep it.

Source: the range 0.35–0.5 of on demand is that of m5 in the Vantage EC2 export; the size of an
hour's move and the bounds are assumed.
"""

from __future__ import annotations

import numpy as np

from world import noise
from world.worlds.cloud.state import State

_CHANNEL = noise.channel("cloud.spot")

HOURLY_SIGMA = 0.05
"""Standard deviation of an hour's change, of the logarithm."""
LOWEST, HIGHEST = 0.3, 0.9
"""Bounds of the share of the on-demand price."""


def move(after: State) -> None:
    """Draw the price of a new full hour, in a new state; imagined worlds keep the old one."""
    if after.step % after.settings.hour_steps or after.mean_noise or after.replica.any():
        return
    slots = np.arange(after.settings.regions, dtype=np.uint32)[None, :]
    u = noise.uniforms(after.seeds[:, None], slots, _CHANNEL, after.step)
    normal = np.sqrt(-2.0 * np.log(u[0])) * np.cos(2.0 * np.pi * u[1])
    price = after.columns["g.spot"] * np.exp(HOURLY_SIGMA * normal)
    after.columns["g.spot"] = np.clip(price, LOWEST, HIGHEST)
    after.extras = object()
