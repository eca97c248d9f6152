"""Who has influence under which protocol, and why one number for it is not enough.

    python examples/compare_protocols.py

Question: does a seat matter equally under the weighted sum and under Borda's count, and do
Shapley's value and leave-one-out tell the same story?
Method: three short episodes of `cloudedge/hard` on the same storms under each protocol. All sixteen
coalitions of the four seats are played per storm; an absent seat neither proposes nor votes.
Leave-one-out is what the full room loses without a seat; Shapley's value averages what a seat adds
over every order of arrival, so that the values sum to what the full room is worth above nobody.
Expected: they disagree. The room misses the janitor by next to nothing; Shapley's value gives it a
quarter or more of the worth, because it also counts small rooms: alone it ends the random actions
of an empty room (v of nobody), as any seat does, and they share that. Under Borda leave-one-out
sums to nearly nothing of what the room is worth; Shapley's values always sum to it. Resource is
pivotal most often under Borda and worth less than nothing: power is not merit. Three short storms
show the mechanism; they are too few to rank protocols.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from orchestrator.spec import EpisodeSpec
from orchestrator.study.influence.account import Influence, Question, influence_over_seeds

PROTOCOLS = ("weighted_score", "borda")
SEEDS = range(3)


def of_protocol(name: str) -> Influence:
    """Who moved what under one protocol."""
    spec = EpisodeSpec(
        scenario="cloudedge/hard", protocol=name, steps=10, lookahead_steps=3, samples=4
    )
    return influence_over_seeds(spec, SEEDS, Question(lies=False, jobs=2))


def tell(protocol: str, found: Influence) -> None:
    """One table: what a seat is worth by either measure, and how often it was pivotal."""
    worth = (found.worth(found.full) or 0.0) - (found.worth(0) or 0.0)
    print(f"{protocol}: the full room is worth {worth:+.1f} reward above nobody")
    print("  seat            Shapley          leave-one-out    pivotal")
    totals = [0.0, 0.0]
    for row, seat in enumerate(found.seats):
        values = [found.of_seat(name, row) or {} for name in ("shapley", "leave_one_out")]
        cells = [f"{value['value']:+7.1f} ± {value['se']:<5.1f}" for value in values]
        share = (found.of_seat("pivotality", row) or {})["value"]
        print(f"  {seat:15} {cells[0]}  {cells[1]}  {100 * share:5.1f} %")
        totals = [total + value["value"] for total, value in zip(totals, values, strict=True)]
    print(f"  {'sum':15} {totals[0]:+7.1f}          {totals[1]:+7.1f}\n")


def main() -> None:
    """Play the coalitions under each protocol and tell."""
    for name in PROTOCOLS:
        tell(name, of_protocol(name))
    print(f"reward, mean ± standard error over {len(SEEDS)} storms, the same for every protocol")


if __name__ == "__main__":
    main()
