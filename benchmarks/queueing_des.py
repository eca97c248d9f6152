"""The latency model of the cloud world beside exact theory and a discrete event simulation.

A step of 300 s is simulated request by request: G/G/c, first come, first served, clients that
leave after a time-out of 1 s, starting empty or with a backlog, many replications a cell. Mean
and 95th percentile of the response time stand beside what `world.worlds.cloud.queueing` says. A
dropped request waited the time-out; in percentiles it took twice that, as in the world.

``--write`` also renews the table that the tests read; names of sets as arguments run only those.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
import zlib
from collections.abc import Iterable
from heapq import heapify, heapreplace
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

from world.worlds.cloud import queueing

Floats = NDArray[np.float64]

TABLE = Path(__file__).resolve().parent.parent / "tests/support/queueing_des.csv"
DT_S = 300.0
TIMEOUT_S = 1.0
TAU_S = 0.04
SERVERS = (4, 16, 48)
REPLICATIONS = {4: 40, 16: 20, 48: 20}
LIGHT_REPLICATIONS = 6  # below a load of 0.9, where a step holds hundreds of relaxation times
DATABASE_REPLICATIONS = 4  # a database call takes 2.5 ms: a step is long
ERLANG_SERVERS = (1, 2, 4, 8, 16, 48, 96, 256)
ERLANG_LOADS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
PROFILE = (0.7, 0.95, 1.2, 1.2, 0.98, 0.7)
"""Utilisation of successive steps: into overload and out of it."""
HOPS = ((0.7, 0.6), (0.85, 0.8), (0.93, 0.9))
"""Utilisation of a pool (34 ms) and of the database (2.5 ms) that each request calls twice."""


class Traffic(NamedTuple):
    """Squared coefficients of variation of the times between arrivals and of the service."""

    arrival_cv2: float
    service_cv2: float


TRAFFIC = {
    "poisson/exponential": Traffic(1.0, 1.0),
    "poisson/lognormal-0.5": Traffic(1.0, 0.5),
    "poisson/lognormal-2": Traffic(1.0, 2.0),
    "hyperexponential-4/exponential": Traffic(4.0, 1.0),
}


class Cell(NamedTuple):
    """One setting. `backlog_s` is the work that waits at the start, in seconds of capacity."""

    part: str
    traffic: str
    servers: int
    load: float
    backlog_s: float = 0.0
    tau_s: float = TAU_S


class Seen(NamedTuple):
    """What the simulation measured, with standard errors over replications."""

    replications: int
    requests: int
    mean_ms: float
    mean_se_ms: float
    p95_ms: float
    p95_se_ms: float
    dropped_percent: float


class Said(NamedTuple):
    """What the model says."""

    mean_ms: float
    p95_ms: float
    dropped_percent: float


def cells() -> list[Cell]:
    """Every single-queue setting: 48 stable ones, saturation, backlogs of one time-out."""
    found = []
    for servers in SERVERS:
        for traffic in TRAFFIC:
            found += [Cell("stable", traffic, servers, load) for load in (0.6, 0.8, 0.9, 0.95)]
            found += [Cell("saturated", traffic, servers, load) for load in (0.98, 1.0, 1.05)]
            found += [Cell("backlog", traffic, servers, load, 1.0) for load in (0.8, 0.95, 1.0)]
    return found


def stream(name: str, replication: int) -> np.random.Generator:
    """Random numbers of one replication of one setting, whatever else is run."""
    key = np.array([zlib.crc32(name.encode()), replication], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


def gaps_s(rng: np.random.Generator, count: int, rate: float, cv2: float) -> Floats:
    """Times between arrivals: exponential, or hyper-exponential with balanced means."""
    if cv2 == 1.0:
        return rng.exponential(1.0 / rate, count)
    often = 0.5 * (1.0 + math.sqrt((cv2 - 1.0) / (cv2 + 1.0)))
    fast = rng.random(count) < often
    mean = np.where(fast, 0.5 / (often * rate), 0.5 / ((1.0 - often) * rate))
    return mean * rng.standard_exponential(count)


def services_s(rng: np.random.Generator, count: int, tau_s: float, cv2: float) -> Floats:
    """Service times: exponential, or log-normal for a variation other than 1."""
    if cv2 == 1.0:
        return rng.exponential(tau_s, count)
    spread2 = math.log1p(cv2)
    return rng.lognormal(math.log(tau_s) - 0.5 * spread2, math.sqrt(spread2), count)


def arrivals_s(rng: np.random.Generator, rate: float, cv2: float, dt_s: float) -> Floats:
    """Times of arrival within a step."""
    count = int(rate * dt_s + 10.0 * math.sqrt(rate * dt_s * cv2) + 50.0)
    times: Floats = np.cumsum(gaps_s(rng, count, rate, cv2))
    return times[times < dt_s]


def waits_s(
    arrivals: Floats, services: Floats, free_s: list[float], timeout_s: float = math.inf
) -> Floats:
    """Waits of a first come, first served queue; NaN where a client left.

    The next server to be free is known when a client arrives, so its wait is, too: the recursion
    of Kiefer and Wolfowitz with a heap. A client whose wait would exceed the time-out never
    holds a server.

    Args:
        arrivals: Times of arrival, ascending, s.
        services: Service times, s.
        free_s: A heap of times at which the servers are free; moved on to the end.
        timeout_s: Longest wait.

    Source: Kiefer and Wolfowitz, "On the theory of queues with many servers", Transactions of
    the AMS 78 (1955); one server is Lindley's recursion (1952).
    """
    found: list[float] = []
    note = found.append
    for now, service in zip(arrivals.tolist(), services.tolist(), strict=True):
        free = free_s[0]
        wait = free - now
        if wait <= 0.0:
            note(0.0)
            heapreplace(free_s, now + service)
        elif wait <= timeout_s:
            note(wait)
            heapreplace(free_s, free + service)
        else:
            note(math.nan)
    return np.array(found)


def loaded(rng: np.random.Generator, cell: Cell) -> list[float]:
    """Servers at the start: all idle, or busy with a backlog in front of them."""
    free = [0.0] * cell.servers
    if cell.backlog_s > 0.0:
        count = round(cell.backlog_s * cell.servers / cell.tau_s) + cell.servers
        cv2 = TRAFFIC[cell.traffic].service_cv2
        for service in services_s(rng, count, cell.tau_s, cv2).tolist():
            heapreplace(free, free[0] + service)
    heapify(free)
    return free


class Requests(NamedTuple):
    """Response times of one replication, s: as means count them and as percentiles do."""

    mean_s: Floats
    tail_s: Floats
    dropped: int


def requests(waits: Floats, services: Floats) -> Requests:
    """Response times where a client that left waited T and counts as 2T in the tail."""
    left = np.isnan(waits)
    total = waits + services
    return Requests(
        np.where(left, TIMEOUT_S, total), np.where(left, 2.0 * TIMEOUT_S, total), int(left.sum())
    )


def replicate(cell: Cell, replication: int) -> Requests:
    """One step of one setting."""
    traffic = TRAFFIC[cell.traffic]
    rng = stream(repr(tuple(cell)), replication)
    rate = cell.load * cell.servers / cell.tau_s
    arrivals = arrivals_s(rng, rate, traffic.arrival_cv2, DT_S)
    services = services_s(rng, arrivals.size, cell.tau_s, traffic.service_cv2)
    waits = waits_s(arrivals, services, loaded(rng, cell), TIMEOUT_S)
    return requests(waits, services)


def summary(runs: list[Requests]) -> Seen:
    """Pooled requests; standard errors from the spread between replications."""
    means = np.array([run.mean_s.mean() for run in runs])
    tails = np.array([np.quantile(run.tail_s, 0.95) for run in runs])
    pooled = np.concatenate([run.tail_s for run in runs])
    root = math.sqrt(len(runs))
    return Seen(
        len(runs),
        pooled.size,
        1e3 * float(np.concatenate([run.mean_s for run in runs]).mean()),
        1e3 * float(means.std(ddof=1)) / root,
        1e3 * float(np.quantile(pooled, 0.95)),
        1e3 * float(tails.std(ddof=1)) / root,
        100.0 * sum(run.dropped for run in runs) / pooled.size,
    )


def replications(cell: Cell) -> int:
    """How often a setting is simulated."""
    return REPLICATIONS[cell.servers] if cell.load >= 0.9 else LIGHT_REPLICATIONS


def simulate(cell: Cell, times: int) -> Seen:
    """The discrete event simulation of one setting."""
    return summary([replicate(cell, number) for number in range(times)])


def queue(
    servers: int, tau_s: float, load: float, backlog: float, traffic: Traffic
) -> queueing.Wait:
    """One queue of one step as the world computes it; arrays of one number."""
    capacity = servers / tau_s
    unit = tau_s / servers * 0.5 * (traffic.arrival_cv2 + traffic.service_cv2)
    return _serve(servers, load * capacity, capacity, backlog, unit, DT_S, TIMEOUT_S)


def _serve(
    servers: int,
    rate: float,
    capacity: float,
    backlog: float,
    unit_s: float,
    dt_s: float,
    timeout_s: float,
) -> queueing.Wait:
    rows = (rate, capacity, backlog, unit_s, math.sqrt(2.0 * (servers + 1.0)) - 1.0)
    one, two, three, four, five = (np.array([value]) for value in rows)
    return queueing.serve(one, two, three, four, five, dt_s, timeout_s)


def percentiles(hops: Iterable[tuple[queueing.Wait, float, float]]) -> Said:
    """Response time over hops (wait, service time, variation) as the world adds them up."""
    mean, variance, served = np.zeros(1), np.zeros(1), np.ones(1)
    for wait, tau_s, cv2 in hops:
        mean = mean + wait.mean_s + tau_s
        variance = variance + wait.variance_s2 + cv2 * tau_s * tau_s
        served = served * (1.0 - wait.dropped_fraction)
    p95, _ = queueing.percentiles_ms(mean, variance, np.zeros(1), 1.0 - served, 2.0 * TIMEOUT_S)
    return Said(1e3 * float(mean[0]), float(p95[0]), 100.0 * float(1.0 - served[0]))


def model(cell: Cell) -> Said:
    """The model of one setting."""
    traffic = TRAFFIC[cell.traffic]
    backlog = cell.backlog_s * cell.servers / cell.tau_s
    wait = queue(cell.servers, cell.tau_s, cell.load, backlog, traffic)
    return percentiles([(wait, cell.tau_s, traffic.service_cv2)])


def hop_cells(loads: tuple[float, float]) -> tuple[Cell, Cell]:
    """The pool and the database of the end-to-end check."""
    first, second = loads
    return (
        Cell("hops", "poisson/exponential", 16, first, 0.0, 0.034),
        Cell("hops", "poisson/exponential", 16, second, 0.0, 0.0025),
    )


def simulate_hops(loads: tuple[float, float], times: int) -> Seen:
    """One visit to a pool and two independent ones to a database, end to end."""
    pool, database = hop_cells(loads)
    calls = [replicate(database, number) for number in range(DATABASE_REPLICATIONS)]
    runs = []
    for number in range(times):
        first, second = replicate(pool, number), calls[number % DATABASE_REPLICATIONS]
        pick = stream("hops", number).integers(0, second.mean_s.size, (2, first.mean_s.size))
        runs.append(
            Requests(
                first.mean_s + second.mean_s[pick].sum(axis=0),
                first.tail_s + second.tail_s[pick].sum(axis=0),
                first.dropped,
            )
        )
    return summary(runs)


def model_hops(loads: tuple[float, float]) -> Said:
    """The model of the same."""
    one, two = (
        (queue(cell.servers, cell.tau_s, cell.load, 0.0, Traffic(1.0, 1.0)), cell.tau_s, 1.0)
        for cell in hop_cells(loads)
    )
    return percentiles([one, two, two])


def simulate_profile(times: int) -> list[Seen]:
    """Successive steps of one queue (16 servers, 34 ms) that keeps what waits between them."""
    servers, tau_s = 16, 0.034
    steps: list[list[Requests]] = [[] for _ in PROFILE]
    for number in range(times):
        rng = stream("profile", number)
        free = [0.0] * servers
        for step, load in enumerate(PROFILE):
            arrivals = step * DT_S + arrivals_s(rng, load * servers / tau_s, 1.0, DT_S)
            services = services_s(rng, arrivals.size, tau_s, 1.0)
            steps[step].append(requests(waits_s(arrivals, services, free, TIMEOUT_S), services))
    return [summary(runs) for runs in steps]


def model_profile() -> list[Said]:
    """The model of the same."""
    backlog, found = 0.0, []
    for load in PROFILE:
        wait = queue(16, 0.034, load, backlog, Traffic(1.0, 1.0))
        backlog = float(wait.backlog[0])
        found.append(percentiles([(wait, 0.034, 1.0)]))
    return found


def erlang_c(servers: int, load: float) -> float:
    """Probability of waiting in M/M/c, by the stable recursion of Erlang B."""
    offered = load * servers
    blocked = 1.0
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    return blocked / (1.0 - load * (1.0 - blocked))


def erlang_errors() -> list[float]:
    """Relative errors of the stationary response time against exact M/M/c, fractions."""
    found = []
    for servers in ERLANG_SERVERS:
        for load in ERLANG_LOADS:
            exact = 1.0 + erlang_c(servers, load) / (servers * (1.0 - load))
            wait = _serve(servers, load * servers, servers, 0.0, 1.0 / servers, 1e12, 1e9)
            found.append((1.0 + float(wait.mean_s[0])) / exact - 1.0)
    return found


class Row(NamedTuple):
    """A measured setting beside the model."""

    cell: Cell
    seen: Seen
    said: Said

    @property
    def mean_error(self) -> float:
        """Relative error of the mean, fraction."""
        return self.said.mean_ms / self.seen.mean_ms - 1.0

    @property
    def p95_error(self) -> float:
        """Relative error of the 95th percentile, fraction."""
        return self.said.p95_ms / self.seen.p95_ms - 1.0


def measure(parts: Iterable[str]) -> list[Row]:
    """Simulate the settings of these parts and put the model beside them."""
    wanted = set(parts)
    rows = [
        Row(cell, simulate(cell, replications(cell)), model(cell))
        for cell in cells()
        if cell.part in wanted
    ]
    if "hops" in wanted:
        for loads in HOPS:
            seen = simulate_hops(loads, 20)
            rows.append(Row(hop_cells(loads)[0], seen, model_hops(loads)))
    if "profile" in wanted:
        for step, (seen, said) in enumerate(
            zip(simulate_profile(20), model_profile(), strict=True)
        ):
            name = Cell("profile", f"step {step}", 16, PROFILE[step], 0.0, 0.034)
            rows.append(Row(name, seen, said))
    return rows


PARTS = {
    "stable": "48 cells, load .6-.95, starting empty",
    "saturated": "36 cells, load .98-1.05, starting empty",
    "backlog": "36 cells, load .8-1, 1 s of work waiting at the start",
    "hops": "3 cells, pool and two database calls, load .7-.93",
    "profile": "6 successive steps, load .7-1.2 and back",
}
TARGETS = {
    ("stable", "mean"): "<= 15", ("stable", "p95"): "<= 16", ("saturated", "mean"): "<= 45",
    ("backlog", "mean"): "<= 45", ("hops", "p95"): "<= 6",
}  # fmt: skip


def figures(rows: list[Row]) -> dict[str, Any]:
    """Largest errors by part, in the form in which benchmarks report."""
    exact = [abs(error) for error in erlang_errors()]
    document: dict[str, Any] = {
        "queueing_erlang_mean": _figure(
            100.0 * sum(exact) / len(exact), "% error of the mean response, mean over 64 cells",
            "exact Erlang C", "<= 0.6", len(exact),
        ),
        "queueing_erlang_largest": _figure(
            100.0 * max(exact), "% error of the mean response, largest of 64 cells",
            "exact Erlang C", "<= 3", len(exact),
        ),
    }  # fmt: skip
    for part, what in PARTS.items():
        for quantity in ("mean", "p95"):
            errors = [
                100.0 * (row.mean_error if quantity == "mean" else row.p95_error)
                for row in rows
                if row.cell.part == part
            ]
            if errors:
                document[f"queueing_{part}_{quantity}"] = {
                    **_figure(
                        max(abs(error) for error in errors),
                        f"% error of the {quantity} response, largest; {what}",
                        "discrete event simulation", TARGETS.get((part, quantity)), len(errors),
                    ),
                    "least": round(min(errors), 1),
                    "most": round(max(errors), 1),
                    "mean_size": round(sum(abs(error) for error in errors) / len(errors), 1),
                }  # fmt: skip
    points = [row.said.dropped_percent - row.seen.dropped_percent for row in rows]
    if points:
        document["queueing_dropped"] = _figure(
            max(abs(point) for point in points), "percentage points of dropped requests, largest",
            "discrete event simulation", None, len(points),
        )  # fmt: skip
    for row in rows:
        cells_of = document[f"queueing_{row.cell.part}_mean"].setdefault("cells", [])
        cells_of.append(_flat(row))
    return document


def _figure(value: float, unit: str, reference: str, target: str | None, n: int) -> dict[str, Any]:
    return {
        "value": round(value, 2), "unit": unit, "reference": reference, "target": target, "n": n,
    }  # fmt: skip


def _flat(row: Row) -> dict[str, Any]:
    cell = row.cell
    return {
        "traffic": cell.traffic, "servers": cell.servers, "load": cell.load,
        "backlog_s": cell.backlog_s,
        **{name: round(value, 3) for name, value in row.seen._asdict().items()},
        **{f"model_{name}": round(value, 3) for name, value in row.said._asdict().items()},
        "mean_ratio": round(row.mean_error + 1.0, 4), "p95_ratio": round(row.p95_error + 1.0, 4),
    }  # fmt: skip


COLUMNS = ("part", "traffic", "servers", "load", "backlog_s", "tau_s", *Seen._fields)


def write_table(rows: list[Row], path: Path = TABLE) -> None:
    """Write what was simulated, without the model: the tests compute that.

    Parts that were not measured anew stay as they stand.
    """
    known = {row.cell: row.seen for row in rows}
    new = {cell.part for cell in known}
    kept = [(cell, seen) for cell, seen in read_table(path) if cell.part not in new]
    merged = sorted([*kept, *known.items()], key=lambda pair: [*PARTS].index(pair[0].part))
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(
            "# Discrete event simulation, steps of 300 s, time-out 1 s, written by: "
            f"python benchmarks/queueing_des.py --write (numpy {np.__version__})\n"
        )
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        for cell, seen in merged:
            values = (f"{value:.6g}" if isinstance(value, float) else value for value in seen)
            table.writerow([*cell, *values])


def read_table(path: Path = TABLE) -> list[tuple[Cell, Seen]]:
    """The simulated table; nothing where there is none."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        file.readline()
        return [
            (
                Cell(
                    line["part"], line["traffic"], int(line["servers"]), float(line["load"]),
                    float(line["backlog_s"]), float(line["tau_s"]),
                ),
                Seen(
                    int(line["replications"]), int(line["requests"]),
                    *(float(line[name]) for name in Seen._fields[2:]),
                ),
            )
            for line in csv.DictReader(file)
        ]  # fmt: skip


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure, and write the table where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; none means all")
    parser.add_argument("--write", action="store_true", help=f"renew {TABLE.name}")
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    rows = measure(chosen.parts or PARTS)
    if chosen.write:
        write_table(rows)
    return figures(rows)


if __name__ == "__main__":
    print(json.dumps(main(), indent=2))
