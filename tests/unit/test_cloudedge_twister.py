"""The seed's generator against CPython's own."""

from __future__ import annotations

import random

import numpy as np
import pytest

from world.worlds.cloudedge import twister

SEEDS = [0, 1, 7, 42, 9004, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**63 - 1]


def cpython_words(seed: int, count: int) -> list[int]:
    source = random.Random(seed)
    return [source.getrandbits(32) for _ in range(count)]


@pytest.mark.parametrize("seed", SEEDS)
def test_words_equal_those_of_cpython(seed: int) -> None:
    assert twister.words_of(seed, 1300).tolist() == cpython_words(seed, 1300)


@pytest.mark.parametrize("seed", SEEDS[:3] + SEEDS[-3:])
def test_words_are_the_same_without_numpy_s_private_seeding(seed: int) -> None:
    source = np.random.MT19937(0)
    twister.seed_publicly(source, seed)
    assert source.random_raw(700).tolist() == cpython_words(seed, 700)


def test_a_batch_of_mixed_seeds_makes_every_seed_s_words() -> None:
    rows = twister.TwisterRows(np.array(SEEDS, dtype=np.uint64), 2)
    words, reals = rows.prepare(1300)
    assert len(words) > len(reals) >= 1300
    for row, seed in enumerate(SEEDS):
        assert words[:1300, row].tolist() == cpython_words(seed, 1300)


@pytest.mark.parametrize("jitter", [0, 1, 2, 3, 4, 7, 15, 16, 1000])
def test_uniform_and_randint_interleave_like_cpython_s(jitter: int) -> None:
    seed = 11
    source, tape = random.Random(seed), twister.TwisterTape(seed, jitter)
    offset, word = tape.first()
    assert offset == source.randint(-jitter, jitter)
    for step in range(1, 60):
        hydro = step % 3 == 0
        u, v, w, extra, word = tape.action(step, word, (0, 2, 4), hydro)
        assert (u, v, w) == (source.random(), source.random(), source.random())
        if hydro:
            assert extra == source.random()
        if step % 2:
            *shocks, offset, word = tape.shock(step, word)
            assert shocks == [source.random() for _ in range(3)]
            assert offset == source.randint(-jitter, jitter)


def test_an_interval_whose_draws_are_rejected_past_the_drawn_words_is_still_found() -> None:
    # Jitter 0 keeps a word only when its top bit is 0, so half of all words are rejected.
    source, tape = random.Random(5), twister.TwisterTape(5, 0)
    offset, word = tape.first()
    assert offset == source.randint(0, 0)
    for _ in range(400):
        *_, offset, word = tape.shock(1, word)
        for _ in range(3):
            source.random()
        assert offset == source.randint(0, 0)
    assert tape.action(1, word, (0, 2, 4), False)[0] == source.random()
