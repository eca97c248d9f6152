"""What a later version brings. Asked for today it is refused by name, never ignored."""

from __future__ import annotations

from world.errors import ConfigError

LATER_OPTIONS: dict[str, str] = {}
"""Option without dashes → what it will bring."""

LATER_SETTINGS: tuple[str, ...] = ()
"""Settings (``warroom.toml`` keys, ``WARROOM_*`` variables) of options that come later."""

LATER_COMMANDS = {
    "serve": "the page and its server",
    "train": "learned personas",
}
"""Command → what it will bring."""


def refusal(asked: str, brings: str) -> ConfigError:
    """The error for something that this version does not have.

    Args:
        asked: What was typed or set.
        brings: What it will be.
    """
    return ConfigError(
        f"{asked} comes with a later version",
        f"{brings} is not built yet",
        "See what this version has: python run_warroom.py --help",
    )
