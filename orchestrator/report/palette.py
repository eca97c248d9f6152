"""Colours of reports, light and dark, and style sheets made of them.

The eight hues of seats are those of Okabe & Ito, "Color universal design" (2008), which people
with any common form of colour blindness can tell apart; black and yellow, which vanish on one of
the two grounds, are replaced by a grey and a brown. Dark pages use lighter shades of the same.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

LIGHT = {
    "paper": "#ffffff",
    "panel": "#f6f7f9",
    "ink": "#1b1f24",
    "soft": "#57606a",
    "grid": "#e7eaee",
    "axis": "#9aa3ad",
    "edge": "#d5dae0",
    "link": "#0b5cad",
    "target": "#00785a",
    "crisis": "#fdebdf",
    "good": "#00785a",
    "bad": "#c8470a",
    "gain": "#7d97b5",
    "act": "#4d6a8c",
    "rest": "#7f8a97",
    "warn": "#8a5a00",
    "run0": "#1b1f24",
    "run1": "#0072b2",
    "s0": "#0072b2",
    "s1": "#d55e00",
    "s2": "#009e73",
    "s3": "#b2599b",
    "s4": "#c98b00",
    "s5": "#3fa0d6",
    "s6": "#7a5c3e",
    "s7": "#5f6b76",
}
DARK = {
    "paper": "#14181d",
    "panel": "#1c2127",
    "ink": "#e8ebef",
    "soft": "#a3adb8",
    "grid": "#2a3138",
    "axis": "#6b7580",
    "edge": "#353d46",
    "link": "#7ab8f0",
    "target": "#3fcf9f",
    "crisis": "#3d2a1f",
    "good": "#3fcf9f",
    "bad": "#ff8a4c",
    "gain": "#5f7ea3",
    "act": "#8fb0d6",
    "rest": "#7d8894",
    "warn": "#f0c04a",
    "run0": "#e8ebef",
    "run1": "#4db2f0",
    "s0": "#4db2f0",
    "s1": "#ff8a4c",
    "s2": "#3fcf9f",
    "s3": "#e09acb",
    "s4": "#f0c04a",
    "s5": "#8fd0f5",
    "s6": "#c9a27a",
    "s7": "#aab4be",
}
_VARIABLE = re.compile(r"var\(--([a-z0-9]+)\)")
_FOLDER = Path(__file__).parent


@cache
def asset(name: str) -> str:
    """A file of ours that goes into a report."""
    return (_FOLDER / name).read_text(encoding="utf-8")


@cache
def sheet_css() -> str:
    """The style sheet of a drawing on its own: light, with every colour written out."""
    return _VARIABLE.sub(lambda found: LIGHT[found[1]], asset("figure.css")).replace("\n", "")


@cache
def page_css() -> str:
    """The style sheet of a page: light or dark as the system says, unless a button says else."""
    light, dark = (_variables(colours) for colours in (LIGHT, DARK))
    return (
        f":root{{color-scheme:light;{light}}}"
        f"@media(prefers-color-scheme:dark){{:root{{color-scheme:dark;{dark}}}}}"
        f':root[data-theme="light"]{{color-scheme:light;{light}}}'
        f':root[data-theme="dark"]{{color-scheme:dark;{dark}}}'
        + asset("figure.css")
        + asset("page.css")
    )


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())
