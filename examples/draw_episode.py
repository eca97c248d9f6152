"""Play an episode and draw it as one SVG: metrics against targets above, what was done below.

Shaded steps are in crisis. The picture in docs/world.md was made with:

    python examples/draw_episode.py docs/img/cloud-medium.svg
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from orchestrator.episode import run_episode
from orchestrator.report.drawing import Drawing
from orchestrator.report.figures import metric_figure, timeline_figure
from orchestrator.report.gather import gather
from orchestrator.report.palette import sheet_css
from orchestrator.spec import DEFAULT_SCENARIO, EpisodeSpec

WIDTH, MARGIN = 980.0, 20.0


def picture(scenario: str, seed: int) -> str:
    """One episode of the default room as an SVG document."""
    with tempfile.TemporaryDirectory() as folder:
        spec = EpisodeSpec(
            scenario=scenario, seed=seed, driver="loop", store="inprocess", out=folder
        )
        result = run_episode(spec)
        account = gather(Path(result.trace))
    metrics, actions = metric_figure([account], WIDTH), timeline_figure(account, WIDTH)
    height = 2 * MARGIN + 24 + metrics.height + 24 + actions.height
    page = Drawing(WIDTH + 2 * MARGIN, height, f"An episode of {scenario}, seed {seed}")
    words = f"{scenario}, seed {seed}: score {result.score:.3f}; shaded steps are in crisis"
    page.text(MARGIN, MARGIN + 6, words, "sub")
    page.place(metrics, MARGIN, MARGIN + 20)
    page.place(actions, MARGIN, MARGIN + 44 + metrics.height)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + page.svg(sheet_css()) + "\n"


def main() -> None:
    """Draw the episode that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--scenario", default=DEFAULT_SCENARIO)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(picture(asked.scenario, asked.seed), encoding="utf-8")


if __name__ == "__main__":
    main()
