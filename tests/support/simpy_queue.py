"""A queue as a process-based simulation, to be read: what the fast recursion is checked against."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import simpy
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Process = Generator[simpy.Event, object, None]


def simpy_waits_s(arrivals: Floats, services: Floats, servers: int, timeout_s: float) -> Floats:
    """Waits of a first come, first served queue; NaN where a client left.

    Every client queues for one of the servers, leaves when it has waited for the time-out, and
    else holds the server for its service time.

    Args:
        arrivals: Times of arrival, ascending, s.
        services: Service times, s.
        servers: Number of servers.
        timeout_s: Longest wait, s.
    """
    env = simpy.Environment()
    pool = simpy.Resource(env, servers)
    waits = np.full(arrivals.size, np.nan)

    def client(number: int) -> Process:
        came = env.now
        with pool.request() as turn:
            yield turn | env.timeout(timeout_s)
            if not turn.triggered:
                return
            waits[number] = env.now - came
            yield env.timeout(float(services[number]))

    def source() -> Process:
        for number, time_s in enumerate(arrivals.tolist()):
            yield env.timeout(time_s - env.now)
            env.process(client(number))

    env.process(source())
    env.run()
    return waits
