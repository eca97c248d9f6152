"""The yardstick: CloudEdge's rules in allocation-free plain Python on CPython's own generator.

Module-level floats, no objects, no observation, no reward breakdown: about as fast as plain Python
can play this environment. It shares no line with the product and is checked against it before a
ratio is printed.
"""

from __future__ import annotations

import random

latency = cost = carbon = 0.0
step = stable = following = 0
last = -1
struck = False
_rng = random.Random(0)
_uniform = _rng.uniform

_BASE, _JITTER = 7, 2


def reset(seed: int) -> None:
    """Begin an episode of cloudedge/seed/hard."""
    global latency, cost, carbon, step, stable, following, last, struck
    _rng.seed(seed)
    latency, cost, carbon = 280.0, 620.0, 380.0
    step = stable = 0
    last = -1
    struck = False
    following = _BASE + _rng.randint(-_JITTER, _JITTER)


def advance(action: int) -> float:
    """One step; 0–4 as in the product, 4 with five servers in the hydro region."""
    global latency, cost, carbon, step, stable, following, last, struck
    was_struck = struck
    struck = False
    if action == 0:
        latency -= _uniform(25, 40)
        cost += _uniform(12, 22)
        carbon += _uniform(8, 15)
    elif action == 1:
        cost -= _uniform(65, 90)
        latency += _uniform(8, 15)
        carbon -= _uniform(5, 12)
    elif action == 2:
        carbon -= _uniform(25, 40)
        latency += _uniform(3, 8)
        cost -= _uniform(25, 40)
    elif action == 3:
        carbon -= _uniform(40, 70)
        latency += _uniform(10, 25)
        cost += _uniform(5, 20)
    else:
        latency -= _uniform(55, 75)
        cost += _uniform(2, 6)
        carbon -= _uniform(40, 60)
        cost += _uniform(0, 2)
    step += 1
    if step >= following:
        latency += _uniform(35, 65)
        cost += _uniform(10, 25)
        carbon += _uniform(15, 30)
        struck = True
        following = step + _BASE + _rng.randint(-_JITTER, _JITTER)
    latency = 50.0 if latency < 50.0 else 400.0 if latency > 400.0 else latency
    cost = 100.0 if cost < 100.0 else 800.0 if cost > 800.0 else cost
    carbon = 50.0 if carbon < 50.0 else 600.0 if carbon > 600.0 else carbon
    reward = 0.0
    held = 0
    if latency < 150:
        reward += 10
        held += 1
    else:
        reward -= 8
    if cost < 400:
        reward += 8
        held += 1
    else:
        reward -= 6
    if carbon < 220:
        reward += 8
        held += 1
    else:
        reward -= 4
    if held == 3:
        reward += 10
        stable += 1
        if stable >= 5:
            reward += 15
    else:
        stable = 0
    if action == last:
        reward -= 4
    if was_struck and latency < 200:
        reward += 5
    last = action
    return reward
