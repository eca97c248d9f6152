"""A quick sum over a short axis is the slow one to the last bit."""

import numpy as np
import pytest

from world import noise
from world.worlds.cloud.sums import last_axis_sum


@pytest.mark.parametrize("shape", [(512, 5, 3), (3, 2), (1, 7), (4, 8), (2, 20), (5, 1), (4, 0)])
def test_a_short_sum_is_numpy_s_to_the_last_bit(shape: tuple[int, ...]) -> None:
    u = noise.uniforms(7, np.arange(max(int(np.prod(shape)), 1)), noise.channel("test.sums"), 0)
    spread = (u[0] - 0.5) * 10.0 ** np.floor(24.0 * u[1] - 12.0)
    values = spread[: int(np.prod(shape))].reshape(shape)
    before = values.copy()
    assert last_axis_sum(values).tobytes() == np.add.reduce(values, axis=-1).tobytes()
    assert values.tobytes() == before.tobytes()
