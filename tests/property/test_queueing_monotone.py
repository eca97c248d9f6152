"""More load or backlog never helps and more capacity never hurts, in mean, tail and drops."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from world.worlds.cloud import queueing

AROUND_SATURATION = np.arange(0.9, 1.1, 1e-4)


class Queue(NamedTuple):
    vcpu: int
    tau_s: float
    service_cv2: float
    dt_s: float
    timeout_s: float


QUEUES = st.builds(
    Queue,
    vcpu=st.sampled_from([1, 2, 4, 8, 16, 48, 96, 256]),
    tau_s=st.floats(0.0005, 1.0),
    service_cv2=st.floats(0.0, 4.0),
    dt_s=st.sampled_from([30.0, 60.0, 300.0, 3600.0]),
    timeout_s=st.floats(0.2, 10.0),
)


def _measures(queue: Queue, busy, backlog_s=0.0, capacity=1.0) -> dict[str, np.ndarray]:
    """Everything that must not fall; `busy` is at capacity 1."""
    shape = np.broadcast_shapes(np.shape(busy), np.shape(backlog_s), np.shape(capacity))
    busy, backlog_s, capacity = (
        np.broadcast_to(np.asarray(part, dtype=float), shape)
        for part in (busy, backlog_s, capacity)
    )
    rate = queue.vcpu / queue.tau_s
    unit = np.full(shape, queue.tau_s / queue.vcpu * 0.5 * (1.5 + queue.service_cv2))
    root = np.full(shape, math.sqrt(2.0 * (queue.vcpu + 1.0)) - 1.0)
    wait = queueing.serve(
        busy * rate, capacity * rate, backlog_s * rate, unit, root, queue.dt_s, queue.timeout_s
    )
    assert (wait.mean_s >= 0.0).all()
    assert (wait.mean_s <= queue.timeout_s * (1.0 + 1e-12)).all()
    assert (wait.variance_s2 >= 0.0).all()
    assert ((wait.dropped_fraction >= 0.0) & (wait.dropped_fraction <= 1.0)).all()
    p95, p99 = queueing.percentiles_ms(
        wait.mean_s + queue.tau_s,
        wait.variance_s2 + queue.service_cv2 * queue.tau_s**2,
        np.zeros(shape),
        wait.dropped_fraction,
        2.0 * queue.timeout_s,
    )
    cap = 2000.0 * queue.timeout_s
    return {
        "mean": wait.mean_s / queue.timeout_s, "p95": p95 / cap, "p99": p99 / cap,
        "dropped": wait.dropped_fraction, "backlog": wait.backlog / (rate * queue.timeout_s),
    }  # fmt: skip


def _never_falls(found: dict[str, np.ndarray]) -> None:
    for name, values in found.items():
        assert (np.diff(values) >= -1e-11).all(), name


@given(queue=QUEUES, backlog=st.floats(0.0, 2.0))
@limits(max_examples=150, deadline=None)
def test_nothing_falls_while_load_rises_through_saturation_in_steps_of_a_ten_thousandth(
    queue, backlog
):
    _never_falls(_measures(queue, AROUND_SATURATION, backlog * queue.timeout_s))


@given(queue=QUEUES, backlog=st.floats(0.0, 2.0))
@limits(max_examples=60, deadline=None)
def test_nothing_falls_while_load_rises_from_nothing_to_three_times_the_capacity(queue, backlog):
    _never_falls(_measures(queue, np.arange(0.0, 3.0, 2e-3), backlog * queue.timeout_s))


@given(queue=QUEUES, busy=st.floats(0.05, 2.0))
@limits(max_examples=60, deadline=None)
def test_nothing_falls_while_the_backlog_rises(queue, busy):
    _never_falls(_measures(queue, busy, np.linspace(0.0, 1.5 * queue.timeout_s, 1001)))


@given(queue=QUEUES, busy=st.floats(0.9, 1.1), backlog=st.floats(0.0, 2.0))
@limits(max_examples=60, deadline=None)
def test_nothing_but_what_the_next_step_inherits_rises_while_capacity_rises(queue, busy, backlog):
    found = _measures(queue, busy, backlog * queue.timeout_s, np.arange(1.0, 1.2, 1e-4))
    # The backlog may hold more where more is served in time.
    found.pop("backlog")
    _never_falls({name: -values for name, values in found.items()})


@pytest.mark.parametrize("vcpu", [1, 4, 16, 96])
def test_there_is_no_jump_at_saturation(vcpu):
    queue = Queue(vcpu, 0.034, 1.0, 300.0, 1.0)
    found = _measures(queue, np.arange(0.99, 1.01, 1e-5), 0.3)
    for name, values in found.items():
        assert np.diff(values).max() < 1.01 * 300.0 * 1e-5, name  # what the load itself adds
