"""The store's commit against the least that could do the same writes.

The yardstick is one FCALL of a function without any check: the same XADD, HSET and SETRANGE on
the same server, through the same client. Batches of both are interleaved, so that a busy machine
slows both; the ratio is of the medians. Also: commands that the server saw for each step, and
what a commit costs in process. Prints JSON.

Run: python benchmarks/store.py [--steps N] [--batches N]
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.stores import wait_until_stopped
from world.model import Cells, Delta, Snapshot
from world.store.base import EpisodeMeta, StoreSettings, WorldStore
from world.store.connect import connect_url
from world.store.embedded import attach
from world.store.functions import Client
from world.store.inprocess import InProcessStore

ROWS = 1_000
PAYLOAD = b"x" * 600
BARE = """#!lua name=bare
redis.register_function('bare_apply', function(keys, args)
  redis.call('XADD', keys[2], args[1] .. '-0', 'r', args[2], 'd', args[3], 'f', args[4],
    'm', args[5], 'h', args[6], 'n', args[7], 'c', args[8])
  redis.call('HSET', keys[1], 'step', args[1], 'req', args[2], 'hidden', args[6],
    'm:latency_ms', args[9], 'm:cost_usd_per_hour', args[10], 'm:carbon_kg_per_day', args[11])
  redis.call('SETRANGE', keys[3], args[12], args[13])
  redis.call('SETRANGE', keys[4], args[14], args[15])
  return {'OK', args[1]}
end)
"""
STEPS = 300
BATCHES = 15


def snapshot() -> Snapshot:
    """Three metrics, two columns."""
    columns = {"cpu_percent": np.zeros(ROWS), "h.load": np.zeros(ROWS)}
    metrics = {"latency_ms": 1.0, "cost_usd_per_hour": 2.0, "carbon_kg_per_day": 3.0}
    return Snapshot(0, metrics, b"h" * 32, columns, tuple(f"vm-{row}" for row in range(ROWS)))


def delta(step: int) -> Delta:
    """Three metrics, hidden scalars and one cell in each of two columns."""
    cell = np.float64(step).tobytes()
    offset = 8 * (step % ROWS)
    value = float(step)
    return Delta(
        {"latency_ms": value, "cost_usd_per_hour": value, "carbon_kg_per_day": value},
        b"h" * 32,
        (Cells("cpu_percent", offset, cell), Cells("h.load", offset, cell)),
    )


class Writer:
    """Commits steps of one episode, batch after batch."""

    def __init__(self, store: WorldStore, episode: str) -> None:
        store.create(EpisodeMeta(episode, "bench", "", 0, "{}"), snapshot(), b"")
        lease = store.lease(episode, "0", "bench", ttl_s=600.0)
        if lease is None:
            raise RuntimeError("somebody else holds a new episode")
        self._store, self._lease, self._step = store, lease, 0

    def batch(self, steps: int) -> float:
        """Microseconds a step."""
        first = self._step
        work = [(step, f"r/{step + 1}", delta(step + 1)) for step in range(first, first + steps)]
        apply, lease = self._store.apply, self._lease
        started_s = time.perf_counter()
        for step, request_id, change in work:
            apply(lease, step, request_id, change, PAYLOAD)
        self._step = first + steps
        return (time.perf_counter() - started_s) / steps * 1e6


class BareWriter:
    """The same writes by a function without a check."""

    def __init__(self, client: redis.Redis, name: str) -> None:
        commands: Client = client
        self._call: Callable[..., Any] = commands.execute_command
        self._call("FUNCTION", "LOAD", "REPLACE", BARE)
        self._keys = [f"{name}:w", f"{name}:t", f"{name}:c:cpu_percent", f"{name}:h:load"]
        for key in self._keys[2:]:
            client.set(key, bytes(8 * ROWS))
        self._step = 0

    def batch(self, steps: int) -> float:
        """Microseconds a step."""
        first = self._step + 1
        work = []
        for step in range(first, first + steps):
            cell, offset = np.float64(step).tobytes(), 8 * (step % ROWS)
            metrics, cells = bytes(78), bytes(36)
            fixed = (step, f"r/{step}", PAYLOAD, 1, metrics, b"h" * 32, "cpu_percent h.load")
            work.append((*fixed, cells, cell, cell, cell, offset, cell, offset, cell))
        call, keys = self._call, self._keys
        started_s = time.perf_counter()
        for args in work:
            call("FCALL", "bare_apply", 4, *keys, *args)
        self._step += steps
        return (time.perf_counter() - started_s) / steps * 1e6


def against_bare(durable: bool, steps: int, batches: int) -> dict[str, float]:
    """One server, both writers in turn."""
    folder = Path(tempfile.mkdtemp(prefix="wr-bench-")) if durable else None
    attachment = attach(folder)
    if attachment is None:
        raise RuntimeError("no server binary runs here")
    store = connect_url(f"unix://{attachment.socket}", StoreSettings())
    client = redis.Redis(
        unix_socket_path=str(attachment.socket), retry=Retry(NoBackoff(), 0), protocol=2
    )
    ours, bare = Writer(store, "bench"), BareWriter(client, "{bare}")
    ours.batch(steps)
    bare.batch(steps)
    pairs = [(ours.batch(steps), bare.batch(steps)) for _ in range(batches)]
    trips = trips_per_step(client, ours, steps)
    client.close()
    store.disconnect()
    attachment.detach()
    if folder is not None:
        wait_until_stopped(folder)
        shutil.rmtree(folder, ignore_errors=True)
    ours_us = statistics.median(pair[0] for pair in pairs)
    bare_us = statistics.median(pair[1] for pair in pairs)
    return {
        "apply_us": round(ours_us, 1),
        "bare_us": round(bare_us, 1),
        "rate_over_bare": round(bare_us / ours_us, 3),
        "applies_per_s": round(1e6 / ours_us),
        "round_trips_per_step": trips,
    }


def trips_per_step(client: redis.Redis, writer: Writer, steps: int) -> float:
    """Commands from clients that the server counted while steps were committed."""
    client.config_resetstat()
    writer.batch(steps)
    counted: dict[str, Any] = client.info("commandstats")
    # What a function does inside the server is counted by command too, but is no trip.
    trips = ("cmdstat_fcall", "cmdstat_evalsha", "cmdstat_eval", "cmdstat_ping", "cmdstat_hget")
    return float(sum(counted[name]["calls"] for name in trips if name in counted)) / steps


def in_process(steps: int, batches: int) -> dict[str, float]:
    """The same commits without a server."""
    writers = {keep: Writer(InProcessStore(keep_log=keep), "bench") for keep in (True, False)}
    took = {
        keep: statistics.median(writer.batch(steps) for _ in range(batches))
        for keep, writer in writers.items()
    }
    return {"apply_us": round(took[True], 2), "apply_without_log_us": round(took[False], 2)}


def main() -> dict[str, Any]:
    """Measure both servers and the in-process store."""
    figures: dict[str, Any] = {}
    for name, durable in (("store_apply", True), ("store_apply_memory", False)):
        found = against_bare(durable, STEPS, BATCHES)
        figures[name] = {
            "value": found["applies_per_s"],
            "unit": "applies/s",
            "reference": f"bare FCALL of the same writes, {found['bare_us']} us",
            "ratio": found["rate_over_bare"],
            "target": ">= 0.6",
            "n": BATCHES,
        }
        figures[f"{name}_round_trips"] = {
            "value": found["round_trips_per_step"],
            "unit": "round trips a step",
            "target": "1",
            "n": STEPS,
        }
    alone = in_process(STEPS, BATCHES)
    figures["store_apply_in_process"] = {
        "value": alone["apply_us"],
        "unit": "us an apply",
        "reference": f"without a log, {alone['apply_without_log_us']} us",
        "n": BATCHES,
    }
    return figures


if __name__ == "__main__":
    print(json.dumps(main(), indent=2))
