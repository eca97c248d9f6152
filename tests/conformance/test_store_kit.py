"""The public store kit passes on every store there is, beside episodes that it leaves alone."""

from __future__ import annotations

from agents.testkit import check_store
from tests.support.stores import created, store_state
from world.store.base import WorldStore


def test_every_store_conforms_by_the_public_kit_and_keeps_its_other_episodes(
    store: WorldStore, episode: str
) -> None:
    created(store, episode)
    before = store_state(store, episode)
    check_store(store, f"kit.{episode}")
    assert store_state(store, episode) == before
