"""The latency model beside exact theory, a simulated table, and simulations run here."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks import queueing_des as des
from tests.support.simpy_queue import simpy_waits_s
from world.worlds.cloud import queueing

TABLE = des.read_table()


def _rows(part: str) -> list[des.Row]:
    return [des.Row(cell, seen, des.model(cell)) for cell, seen in TABLE if cell.part == part]


def _worst(rows: list[des.Row], quantity: str) -> tuple[float, des.Cell]:
    worst = max(rows, key=lambda row: abs(getattr(row, quantity)))
    return abs(getattr(worst, quantity)), worst.cell


def test_response_times_match_exact_erlang_c():
    errors = np.abs(des.erlang_errors())
    assert errors.size == 64
    assert errors.mean() < 0.006
    assert errors.max() < 0.03


@pytest.mark.parametrize(
    ("servers", "load", "probability"), [(1, 0.5, 0.5), (2, 0.5, 1 / 3), (4, 0.8, 0.5964)]
)
def test_the_exact_waiting_probability_is_that_of_the_textbooks(servers, load, probability):
    assert des.erlang_c(servers, load) == pytest.approx(probability, abs=1e-4)


def test_the_simulated_table_holds_every_cell_of_the_benchmark():
    singles = [cell for cell, _ in TABLE if cell.part in {"stable", "saturated", "backlog"}]
    assert sorted(singles) == sorted(des.cells())
    assert sum(cell.part == "stable" for cell in singles) == 48
    assert all(seen.replications >= 20 for cell, seen in TABLE if cell.load >= 0.9)
    assert all(seen.mean_se_ms < 0.12 * seen.mean_ms for _, seen in TABLE)


def test_a_step_from_empty_is_within_15_percent_in_mean_and_16_in_p95_to_a_load_of_95_percent():
    rows = _rows("stable")
    assert _worst(rows, "mean_error")[0] <= 0.15, _worst(rows, "mean_error")
    assert _worst(rows, "p95_error")[0] <= 0.16, _worst(rows, "p95_error")


def test_a_saturated_step_is_within_45_percent_in_mean_wherever_it_starts():
    rows = _rows("saturated") + _rows("backlog")
    assert _worst(rows, "mean_error")[0] <= 0.45, _worst(rows, "mean_error")
    assert np.mean([abs(row.mean_error) for row in rows]) < 0.07


def test_drops_are_within_one_percentage_point():
    rows = _rows("stable") + _rows("saturated") + _rows("backlog")
    worst = max(rows, key=lambda row: abs(row.said.dropped_percent - row.seen.dropped_percent))
    assert abs(worst.said.dropped_percent - worst.seen.dropped_percent) < 1.0, worst


def test_end_to_end_p95_over_a_pool_and_two_database_calls_is_within_6_percent():
    seen = [seen for cell, seen in TABLE if cell.part == "hops"]
    for loads, simulated in zip(des.HOPS, seen, strict=True):
        said = des.model_hops(loads)
        assert said.p95_ms == pytest.approx(simulated.p95_ms, rel=0.06)
        assert said.mean_ms == pytest.approx(simulated.mean_ms, rel=0.02)


def test_a_ride_into_overload_and_out_of_it_keeps_its_means_within_10_percent():
    seen = [seen for cell, seen in TABLE if cell.part == "profile"]
    for simulated, said in zip(seen, des.model_profile(), strict=True):
        assert said.mean_ms == pytest.approx(simulated.mean_ms, rel=0.10)
        assert said.dropped_percent == pytest.approx(simulated.dropped_percent, abs=0.5)


def test_a_simulation_run_now_agrees_with_the_table_and_the_model():
    cell = des.Cell("stable", "poisson/exponential", 16, 0.9)
    recorded = next(seen for known, seen in TABLE if known == cell)
    fresh = des.summary([des.replicate(cell, number) for number in range(1000, 1020)])
    error = math.hypot(recorded.mean_se_ms, fresh.mean_se_ms)
    assert abs(fresh.mean_ms - recorded.mean_ms) < 5.0 * error
    assert abs(fresh.p95_ms - recorded.p95_ms) < 5.0 * math.hypot(
        recorded.p95_se_ms, fresh.p95_se_ms
    )
    assert des.Row(cell, fresh, des.model(cell)).mean_error == pytest.approx(0.0, abs=0.05)


def test_the_simulation_itself_matches_exact_erlang_c():
    servers, load, count = 4, 0.8, 400_000
    rng = des.stream("exact", 0)
    arrivals = np.cumsum(des.gaps_s(rng, count, load * servers, 1.0))
    waits = des.waits_s(arrivals, des.services_s(rng, count, 1.0, 1.0), [0.0] * servers)
    late = waits[count // 10 :]
    chance = des.erlang_c(servers, load)
    assert (late > 0.0).mean() == pytest.approx(chance, rel=0.03)
    assert late.mean() == pytest.approx(chance / (servers * (1.0 - load)), rel=0.06)


@pytest.mark.parametrize(
    ("load", "traffic", "timeout_s"),
    [
        (0.9, "poisson/exponential", 1.0),
        (1.2, "hyperexponential-4/exponential", 0.5),
        (1.05, "poisson/lognormal-2", 0.2),
    ],
)
def test_the_fast_recursion_gives_every_client_the_wait_of_a_simpy_process(
    load, traffic, timeout_s
):
    servers, tau_s = 8, 0.04
    kind = des.TRAFFIC[traffic]
    rng = des.stream(traffic, 0)
    arrivals = des.arrivals_s(rng, load * servers / tau_s, kind.arrival_cv2, 40.0)
    services = des.services_s(rng, arrivals.size, tau_s, kind.service_cv2)
    fast = des.waits_s(arrivals, services, [0.0] * servers, timeout_s)
    slow = simpy_waits_s(arrivals, services, servers, timeout_s)
    assert (np.isnan(fast) == np.isnan(slow)).all()
    assert np.isnan(fast).any() == (load > 1.0)
    np.testing.assert_allclose(fast, slow, atol=1e-9, equal_nan=True)


def test_the_traffic_has_the_variation_that_it_is_named_after():
    rng = des.stream("moments", 0)
    gaps = des.gaps_s(rng, 400_000, 50.0, 4.0)
    assert gaps.mean() == pytest.approx(0.02, rel=0.02)
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(4.0, rel=0.05)
    for cv2 in (0.5, 1.0, 2.0):
        services = des.services_s(rng, 400_000, 0.04, cv2)
        assert services.mean() == pytest.approx(0.04, rel=0.02)
        assert services.var() / services.mean() ** 2 == pytest.approx(cv2, rel=0.08)


def test_a_brownian_queue_between_two_walls_has_its_known_means():
    unit, timeout = np.full(5, 0.002), 1.0
    busy = np.array([0.5, 0.9, 1.0, 1.1, 3.0])
    found = queueing.limited(busy, unit, timeout)
    spare = busy - 1.0
    x = np.linspace(0.0, timeout, 200_001)
    for drift, u, mean, loss in zip(spare, unit, found.mean_fraction, found.loss, strict=True):
        density = np.exp((drift * x - max(drift, 0.0) * timeout) / u)
        density /= np.trapezoid(density, x)
        assert mean * timeout == pytest.approx(np.trapezoid(x * density, x), rel=1e-4)
        assert loss == pytest.approx(density[-1] * timeout, rel=1e-3, abs=1e-12)


def test_a_long_step_falls_short_of_the_stationary_wait_by_the_exact_deficit():
    busy, unit = np.array([0.9]), np.array([0.002])
    still = queueing.limited(busy, unit, 1e6).mean_fraction * 1e6
    for dt_s in (1e3, 1e4, 1e5):
        mean = still * np.sqrt(queueing.relaxed(still, queueing.reach_s(busy, unit, dt_s)))
        deficit = float(((still - mean) * dt_s)[0])
        assert deficit == pytest.approx(0.002**2 / 0.1**3, rel=20.0 / dt_s + 1e-3)


@pytest.mark.parametrize("busy", [0.7, 0.99, 1.0, 1.3])
def test_a_drain_in_closed_form_equals_its_integral(busy):
    for backlog in (0.0, 0.05, 0.4, 1.0):
        rate = max(1.0 - busy, 0.0) + 3.0 * 0.002
        times = np.linspace(0.0, 300.0, 600_001)
        level = np.maximum(backlog - rate * times, 0.0)
        found = queueing.carried(
            np.array([busy]), np.array([backlog]), np.array([0.002]), 300.0, 1.0
        )
        assert found.mean_s[0] == pytest.approx(np.trapezoid(level, times) / 300.0, rel=1e-4)
        part = backlog / (rate * 300.0)
        if 0.05 <= part <= 1.0 / 3.0:
            assert found.variance_s2[0] == pytest.approx(level.var(), rel=1e-3)
        assert found.variance_s2[0] <= backlog * backlog / 12.0 + 1e-15
