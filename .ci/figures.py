"""Turn the JSON of ``make bench`` (standard input) into the README's table of figures."""

from __future__ import annotations

import json
import sys


def main() -> int:
    """Print a Markdown table."""
    document = json.load(sys.stdin)
    print("| figure | measured | ratio | asked | against |")  # noqa: T201
    print("|---|---|---|---|---|")  # noqa: T201
    for name, figure in sorted(document.items()):
        if not isinstance(figure, dict) or not figure.get("target"):
            continue
        ratio = "" if figure.get("ratio") is None else f"{figure['ratio']:g} ×"
        cells = [f"`{name}`", f"{figure['value']:,} {figure['unit']}", ratio]
        cells += [str(figure["target"]), str(figure.get("reference") or "")]
        print("| " + " | ".join(cells) + " |")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
