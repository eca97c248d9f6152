"""Other words for the same prompt: a persona's own paraphrases, or headings said differently."""

from __future__ import annotations

import json

from agents.backends.llm.prompt import FOLDER
from agents.overrides import apply_overrides
from agents.persona_schema import PersonaSpec

_HEADINGS = (
    "Metrics now",
    "What changed since the last step",
    "What you care about",
    "The situation",
    "What the room decided lately",
    "What the others stood for last",
    "What you stood for before",
)
_OTHER_WORDS = (
    (
        "Current metrics",
        "Changes in the last step",
        "Your goals",
        "How things stand",
        "Recent decisions of the room",
        "The others' last positions",
        "Your own earlier positions",
    ),
    (
        "Readings at this moment",
        "Since the step before",
        "What matters to you",
        "What is known",
        "What was decided before",
        "What the other seats last asked for",
        "What you asked for earlier",
    ),
    (
        "Where the numbers are",
        "What is different from one step ago",
        "The ends that you serve",
        "The state of affairs",
        "The room's latest choices",
        "Where the others stood last",
        "Where you stood until now",
    ),
)


def reworded(spec: PersonaSpec, most: int) -> tuple[PersonaSpec, ...]:
    """The persona with other words in its prompt, at most so many times.

    A file's own paraphrases come first and alone. A file without any that uses the shipped
    prompt gets shipped ones; a prompt of its own is left as it is.
    """
    if spec.backend.kind != "llm" or not most:
        return ()
    texts = spec.prompt.paraphrases or (() if spec.prompt.user else shipped())
    used = spec.prompt.paraphrase
    places = [place for place in range(1, len(texts) + 1) if place != used]
    listed = f"prompt.paraphrases={json.dumps(texts, ensure_ascii=False)}"
    return tuple(
        apply_overrides(spec, [listed, f"prompt.paraphrase={place}"]) for place in places[:most]
    )


def shipped() -> tuple[str, ...]:
    """The shipped prompt with its headings in other words."""
    text = (FOLDER / "user.md").read_text(encoding="utf-8")
    return tuple(_with(text, words) for words in _OTHER_WORDS)


def _with(text: str, words: tuple[str, ...]) -> str:
    for heading, other in zip(_HEADINGS, words, strict=True):
        text = text.replace(f"# {heading}\n", f"# {other}\n")
    return text
