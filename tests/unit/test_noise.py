"""Counter-based noise: known answers, addresses, shapes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from world import noise

# Random123, kat_vectors, philox4x32 10 rounds: counter, key → result.
KNOWN = [
    ([0] * 4, [0] * 2, ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, ["408f276d", "41c83b0e", "a20bc7c6", "6d5451fd"]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        ["d16cfe09", "94fdcceb", "5001e420", "24126ea1"],
    ),
]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_philox_gives_the_published_known_answers(
    counter: list[int], key: list[int], answer: list[str]
) -> None:
    got = noise.philox4x32(np.array(counter, dtype=np.uint64), np.array(key, dtype=np.uint64))
    assert got.dtype == np.uint32
    assert [f"{word:08x}" for word in got.tolist()] == answer


@pytest.mark.parametrize("lanes", [1, 7, 16384, 16385, 40000])
def test_a_lane_does_not_depend_on_how_many_lanes_are_drawn_with_it(lanes: int) -> None:
    seeds = np.arange(lanes) * 7919 % 2**33
    steps = np.arange(lanes) % 31
    together = noise.words(seeds, 0, 5, steps)
    for lane in {0, lanes // 2, lanes - 1}:
        alone = noise.words(int(seeds[lane]), 0, 5, int(steps[lane]))
        assert np.array_equal(together[:, lane], alone)


def test_every_part_of_the_address_changes_the_words() -> None:
    base = {"seed": 3, "entity": 1, "stream": 9, "step": 4, "replica": 0}
    words = {tuple(noise.words(**base).tolist())}
    for part in base:
        words.add(tuple(noise.words(**{**base, part: base[part] + 1}).tolist()))
    words.add(tuple(noise.words(**{**base, "seed": 3 + 2**32}).tolist()))
    assert len(words) == 7


@settings(max_examples=25, deadline=None)
@given(rows=st.integers(1, 5), columns=st.integers(1, 6), seed=st.integers(0, 2**63 - 1))
def test_broadcasting_equals_drawing_one_by_one(rows: int, columns: int, seed: int) -> None:
    steps, replicas = np.arange(rows)[:, None], np.arange(columns)
    drawn = noise.uniforms(seed, 2, 11, steps, replicas)
    assert drawn.shape == (4, rows, columns)
    for row in range(rows):
        for column in range(columns):
            assert np.array_equal(drawn[:, row, column], noise.uniforms(seed, 2, 11, row, column))


def test_a_batch_larger_than_a_tile_in_both_directions_is_drawn_whole() -> None:
    seeds, steps = np.arange(5000), np.arange(11)[:, None]
    drawn = noise.uniforms(seeds, 0, 3, steps)
    assert np.array_equal(drawn[:, 10], noise.uniforms(seeds, 0, 3, 10))
    assert np.array_equal(drawn[:, :, 4999], noise.uniforms(4999, 0, 3, np.arange(11)))


def test_uniforms_are_the_top_24_bits_of_the_words_moved_to_the_middle_of_their_cell() -> None:
    seeds = np.arange(1000)
    words, drawn = noise.words(seeds, 0, 1, 2), noise.uniforms(seeds, 0, 1, 2)
    assert np.array_equal(drawn, ((words >> 8).astype(np.float64) + 0.5) * 2.0**-24)
    assert drawn.min() > 0.0
    assert drawn.max() < 1.0
    assert abs(drawn.mean() - 0.5) < 0.02


def test_uniforms53_use_two_words_each() -> None:
    words = noise.words(5, 0, 1, 2).astype(np.uint64).tolist()
    expected = [((words[i] >> 5) * 2.0**26 + (words[i + 1] >> 6) + 0.5) * 2.0**-53 for i in (0, 2)]
    assert noise.uniforms53(5, 0, 1, 2).tolist() == expected


def test_integers_cover_both_ends_and_nothing_beyond() -> None:
    drawn = noise.integers(np.arange(2000), 0, 1, 0, -2, 2)
    assert set(np.unique(drawn).tolist()) == {-2, -1, 0, 1, 2}


def test_a_channel_is_the_same_in_every_process() -> None:
    assert noise.channel("cloudedge.action") == 0xF8741247
    assert noise.channel("cloudedge.crisis") == 0x39739F4C


def test_rows_of_steps_are_the_uniforms_of_every_step() -> None:
    seeds, steps = np.arange(5000, dtype=np.uint64) << np.uint64(30), np.arange(3, 9)
    rows = noise.uniform_rows(seeds, 0, 3, steps, 2)
    assert rows.shape == (6, 4, 5000)
    assert rows.flags.c_contiguous
    assert np.array_equal(rows, np.moveaxis(noise.uniforms(seeds, 0, 3, steps[:, None], 2), 0, 1))


def test_seeds_that_share_their_high_word_draw_what_they_draw_alone() -> None:
    seeds = np.arange(40) * 77
    together = noise.words(np.append(seeds, 2**40), 0, 5, 1)
    assert np.array_equal(noise.words(seeds, 0, 5, 1), together[:, :-1])


def test_threads_that_draw_at_the_same_time_do_not_disturb_each_other() -> None:
    seeds = [np.arange(20000) + 10**6 * number for number in range(4)]
    alone = [noise.uniforms(each, 0, 3, 1) for each in seeds]
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda each: noise.uniforms(each, 0, 3, 1), seeds * 5))
    for number, got in enumerate(drawn):
        assert np.array_equal(got, alone[number % 4])
