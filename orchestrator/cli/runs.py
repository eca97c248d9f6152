"""``runs`` and ``runs clean``: which runs there are, and clearing finished ones from the store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from orchestrator.cli import options, printing
from orchestrator.console.text import plain
from orchestrator.version import PROGRAM


def list_runs(out: options.Out = None, as_json: options.Json = False) -> int:
    """List runs, newest last."""
    from orchestrator.settings import load_settings
    from orchestrator.trace.runs import list_runs as known

    folder = Path(load_settings(options.given(out=out)).settings.out)
    rows = [_describe(folder / run) for run in known(folder)]
    if as_json:
        printing.document(rows)
        return 0
    if not rows:
        printing.talk(f"no runs in {plain(folder)}. Start one: {PROGRAM} run")
        return 0
    printing.columns(
        [("run", "scenario", "seed", "protocol", "state", "score")]
        + [
            (
                row["run"],
                row["scenario"],
                row["seed"],
                row["protocol"],
                row["state"],
                "—" if row["score"] is None else f"{row['score']:.3f}",
            )
            for row in rows
        ]
    )
    return 0


def clean(store: options.Store = None, as_json: options.Json = False) -> int:
    """Remove every finished episode from the store, whatever folder its files are in; they stay."""
    from orchestrator.settings import load_settings
    from world.store.open import open_store

    resolved = load_settings(options.given(store=store))
    opened = open_store(resolved.store, resolved.store_settings())
    try:
        closed = [stored for stored in opened.episodes() if stored.status != "open"]
        removed = []
        for stored in closed:
            opened.retain(stored.meta.episode, 0)
            removed.append(stored.meta.episode)
        description = opened.description
    finally:
        opened.disconnect()
    if as_json:
        printing.document({"removed": removed, "store": description})
    else:
        printing.say(f"removed {len(removed)} finished episodes from {description}")
    return 0


def _describe(folder: Path) -> dict[str, Any]:
    """One run, as far as its files say; a file that cannot be read leaves its part unknown."""
    record = _read(folder / "run.json")
    scorecard = _read(folder / "scorecard.json")
    spec = record.get("spec", {})
    spec = spec if isinstance(spec, dict) else {}
    total = scorecard.get("total")
    return {
        "run": folder.name,
        "scenario": spec.get("scenario"),
        "seed": spec.get("seed"),
        "protocol": spec.get("protocol"),
        "personas": spec.get("personas", {}),
        "state": "finished" if scorecard else "unfinished",
        "success": scorecard.get("success"),
        "score": total if isinstance(total, int | float) else None,
        "trace": str(folder / "trace.jsonl"),
    }


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


COMMANDS: printing.Commands = {"list": list_runs, "clean": clean}
