"""The cloud grader: joint time in target first, then its parts, incidents and verified savings.

    total = .5·joint + .15·mean single + .15·min(1, joint ÷ certificate's) + .1·incidents
            + .1·min(1, net saving ÷ best), clipped to .01–.99; any harm makes it .01

Every share is taken over the episode and 12 steps more in which nobody acts, so that what was put
off is charged. A saving is the cost of the same storm without any action minus the cost that was
paid, minus one-offs; nothing that anybody claimed counts. Success: every target held in each of
the last five steps, and nothing was harmed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from world.graders.scorecard import SCORE_MIN, Component, GradedStep, Scorecard, clipped
from world.model import Scenario
from world.scenarios.baselines import baselines_of
from world.scenarios.certificates import Certificate, certificate_of

LAST_STEPS: Final = 5
"""Steps at the end in which every target must have held."""
UNDONE_WITHIN_STEPS: Final = 12
"""An action and its opposite on one target within so many steps is oscillation."""

JOINT, SINGLE, CERTIFICATE, INCIDENTS, SAVING = 0.5, 0.15, 0.15, 0.1, 0.1
_PARTS = ("latency", "cost", "carbon")
_LOOKING = frozenset({"detect", "analyse", "evaluate", "crisis_response"})
_OPPOSITE = {"scale_up": "scale_down", "scale_down": "scale_up", "resize": "resize",
             "stop": "start", "start": "stop", "detach": "attach", "attach": "detach"}  # fmt: skip

Facts = Mapping[str, Any]


class Shares(NamedTuple):
    """Time in target with the run-out, as fractions.

    Attributes:
        joint: Every target at once.
        single: Objective → its own share.
    """

    joint: float
    single: Mapping[str, float]


def grade(scenario: Scenario, steps: Sequence[GradedStep]) -> Scorecard:
    """Score an episode from its steps alone.

    Args:
        scenario: What was played, with the horizon that was played.
        steps: The committed steps; those of a finished episode end with the world's own audit
            among the facts. Without it (an episode that was stopped), nothing is known of
            savings and incidents, and steps that were not played count as out of target.
    """
    audit: Facts = steps[-1].facts.get("audit", {}) if steps else {}
    certificate = certificate_of(scenario, int(audit["seed"])) if audit else None
    shares = time_in_target(scenario, steps, audit)
    parts = _weighted(scenario, steps, audit, shares, certificate)
    total = sum(part.value * part.weight for part in parts.values())
    violations = tuple(line for step in steps for line in step.violations)
    harms = max(int(audit.get("harms", 0)), len(violations))
    held = tuple(step.step for step in steps if step.success)
    last = steps[-LAST_STEPS:]
    complete = bool(audit)
    return Scorecard(
        total=SCORE_MIN if harms else clipped(total),
        success=complete and not harms and all(step.success for step in last),
        success_any=bool(held),
        components={**parts, **_shown(scenario, steps, audit, shares, harms)},
        violations=violations,
        baselines=dict(baselines_of(scenario)),
        note=_note(harms, complete, certificate),
    )


def time_in_target(scenario: Scenario, steps: Sequence[GradedStep], audit: Facts) -> Shares:
    """Shares of time in target over the episode and the steps that it ran out."""
    kept: Mapping[str, int] = audit.get("run_out_in_target", {})
    whole = max(scenario.horizon, len(steps)) + int(audit.get("run_out_steps", 0))
    single = {
        name: (sum(step.terms.get(name, 0.0) > 0.0 for step in steps) + kept.get(name, 0)) / whole
        for name in _PARTS
    }
    joint = (sum(step.success for step in steps) + kept.get("all", 0)) / whole
    return Shares(joint, single)


def net_saving_usd(audit: Facts) -> float:
    """Dollars that the twin without actions spent more, less one-offs and what was put off."""
    spent = float(audit["spent_usd"]) + float(audit["one_off_usd"]) + float(audit["put_off_usd"])
    return float(audit["nop_spent_usd"]) + float(audit["nop_put_off_usd"]) - spent


def _best_saving(scenario: Scenario, audit: Facts, certificate: Certificate | None) -> float:
    """What a saving is measured by: the certificate's, else that of holding the cost target."""
    if certificate is not None and certificate.saving_usd > 0.0:
        return certificate.saving_usd
    hours = float(scenario.params.get("dt_minutes", 5.0)) / 60.0
    steps = scenario.horizon + int(audit["run_out_steps"])
    target = scenario.targets["cost_usd_per_hour"] * hours * steps
    return max(float(audit["nop_spent_usd"]) - target, 0.0)


def _weighted(
    scenario: Scenario,
    steps: Sequence[GradedStep],
    audit: Facts,
    shares: Shares,
    certificate: Certificate | None,
) -> dict[str, Component]:
    """The five parts that make the total."""
    held = tuple(step.step for step in steps if step.success)
    single = sum(shares.single.values()) / len(shares.single)
    reached = certificate.joint_fraction if certificate else 1.0
    of_best = min(1.0, shares.joint / reached) if reached > 0.0 else 1.0
    whose = f"a certificate's {reached:.3f}" if certificate else "1, as no certificate ships"
    return {
        "joint": Component(
            shares.joint, JOINT, "fraction",
            f"every target held in {len(held)} of {len(steps)} steps and in "
            f"{audit.get('run_out_in_target', {}).get('all', 0)} of the run-out", held,
        ),
        "single": Component(
            single, SINGLE, "fraction",
            ", ".join(f"{name} {share:.3f}" for name, share in shares.single.items()),
        ),
        "of_certificate": Component(
            of_best, CERTIFICATE, "fraction", f"joint share {shares.joint:.3f} over {whose}"
        ),
        "incidents": _solved(audit),
        "saving": _saved(scenario, audit, certificate),
    }  # fmt: skip


def _counted(audit: Facts) -> list[Facts]:
    return [incident for incident in audit.get("incidents", ()) if incident["counts"]]


def _solved(audit: Facts) -> Component:
    counted = _counted(audit)
    if not audit:
        return Component(0.0, INCIDENTS, "fraction", "the episode was stopped")
    if not counted:
        return Component(1.0, INCIDENTS, "fraction", "no incident that anybody could solve")
    cured = [incident for incident in counted if incident["cured_step"] is not None]
    words = ", ".join(
        f"{incident['cause']}{' of ' + incident['service'] if incident['service'] else ''} "
        f"{incident['status']}"
        for incident in counted
    )
    return Component(
        len(cured) / len(counted), INCIDENTS, "fraction",
        f"{len(cured)} of {len(counted)} cured: {words}",
        tuple(incident["cured_step"] for incident in cured),
    )  # fmt: skip


def _saved(scenario: Scenario, audit: Facts, certificate: Certificate | None) -> Component:
    if not audit:
        return Component(0.0, SAVING, "fraction", "the episode was stopped")
    saving, best = net_saving_usd(audit), _best_saving(scenario, audit, certificate)
    share = min(1.0, max(0.0, saving / best)) if best > 0.0 else 1.0
    whose = "the certificate's" if certificate else "that of holding the cost target from the start"
    return Component(
        share, SAVING, "fraction",
        f"${saving:.2f} saved against doing nothing, net of one-offs; ${best:.2f} is {whose}",
    )  # fmt: skip


def _shown(
    scenario: Scenario, steps: Sequence[GradedStep], audit: Facts, shares: Shares, harms: int
) -> dict[str, Component]:
    """What explains the total and does not count."""
    parts = {
        f"in_target_{name}": Component(
            share, 0.0, "fraction", "share of the steps, run-out included",
            tuple(step.step for step in steps if step.terms.get(name, 0.0) > 0.0),
        )
        for name, share in shares.single.items()
    }  # fmt: skip
    harmed = tuple(step.step for step in steps if step.violations)
    parts["harm"] = Component(
        float(harms), 0.0, "count", "by effect: needed work lost, a service starved, evidence lost",
        harmed,
    )  # fmt: skip
    parts.update(_behaviour(steps))
    if audit:
        parts.update(_areas(scenario, audit))
        parts.update(_responses(steps, audit))
    return parts


def _areas(scenario: Scenario, audit: Facts) -> dict[str, Component]:
    named = (
        ("over_target_latency", "over_latency_ms_steps", "ms·steps", "worst service's p95"),
        ("over_target_cost", "over_cost_usd_per_hour_steps", "$/h·steps", "cost"),
        ("over_target_carbon", "over_carbon_kg_per_day_steps", "kg/day·steps", "carbon"),
    )
    parts = {
        name: Component(float(audit[key]), 0.0, unit, f"{what} above its target, summed")
        for name, key, unit, what in named
    }
    burnt = float(audit["slo_minutes"])
    parts["slo_minutes"] = Component(
        burnt, 0.0, "minutes", "service-minutes in which p95 or errors missed their objective"
    )
    parts["saved_usd"] = Component(
        net_saving_usd(audit), 0.0, "$", "against the same storm without any action, one-offs paid"
    )
    parts["saved_kg"] = Component(
        float(audit["nop_emitted_kg"]) - float(audit["emitted_kg"]), 0.0, "kgCO2e",
        "against the same storm without any action",
    )  # fmt: skip
    parts["one_offs_usd"] = Component(
        float(audit["one_off_usd"]) + float(audit["put_off_usd"]), 0.0, "$",
        f"of which ${float(audit['put_off_usd']):.2f} were put off: unused terms, work left undone",
    )  # fmt: skip
    return parts


def _responses(steps: Sequence[GradedStep], audit: Facts) -> dict[str, Component]:
    """How incidents were met: was the cause found, and after how many steps what happened."""
    counted = _counted(audit)
    with_root = [incident for incident in counted if incident["service"]]
    known = [incident for incident in with_root if incident["known_step"] is not None]
    parts = {
        "root_cause_accuracy": Component(
            len(known) / len(with_root) if with_root else 1.0, 0.0, "fraction",
            f"the right cause was found in {len(known)} of {len(with_root)} incidents",
            tuple(incident["known_step"] for incident in known),
        )
    }  # fmt: skip
    looked = [step.step for step in steps if any(_kind(name) in _LOOKING for name in step.actions)]
    held = [step.step for step in steps if step.success]
    delays: dict[str, list[int]] = {"detect": [], "mitigate": [], "recover": []}
    for incident in counted:
        onset, cured = incident["onset_step"], incident["cured_step"]
        firsts = {
            "detect": next((step for step in looked if step > onset), None),
            "mitigate": cured,
            "recover": next((step for step in held if cured is not None and step >= cured), None),
        }
        for name, step in firsts.items():
            if step is not None:
                delays[name].append(step - onset)
    for name, values in delays.items():
        mean = sum(values) / len(values) if values else 0.0
        parts[f"steps_to_{name}"] = Component(
            mean, 0.0, "steps", f"mean over {len(values)} of {len(counted)} incidents"
        )
    return parts


def _behaviour(steps: Sequence[GradedStep]) -> dict[str, Component]:
    churned = tuple(step.step for step in steps if (step.metrics.get("repeat_fraction") or 0) > 0)
    swings = oscillations(steps)
    refused = tuple(step.step for step in steps if "refused" in step.statuses)
    failed = [
        step.step
        for step in steps
        for status in step.statuses
        if status in ("failed", "already_gone", "accepted_not_effective")
    ]
    return {
        "churn": Component(
            float(len(churned)), 0.0, "steps", "steps with actions that failed or undo others",
            churned,
        ),
        "oscillation": Component(
            float(len(swings)), 0.0, "count",
            f"actions undone on the same target within {UNDONE_WITHIN_STEPS} steps", swings,
        ),
        "refusals": Component(
            float(sum(step.statuses.count("refused") for step in steps)), 0.0, "count",
            "actions that the world's own validator refused", refused,
        ),
        "without_effect": Component(
            float(len(failed)), 0.0, "count", "actions that failed or came to nothing",
            tuple(dict.fromkeys(failed)),
        ),
    }  # fmt: skip


def oscillations(steps: Sequence[GradedStep]) -> tuple[int, ...]:
    """Steps at which an action undid an earlier one on the same target within 12 steps."""
    last: dict[tuple[str, str], int] = {}
    found = []
    for step in steps:
        for name, status in zip(step.actions, step.statuses, strict=False):
            kind, _, rest = name.partition(":")
            target = rest.partition(":")[0]
            if status != "applied" or kind not in _OPPOSITE:
                continue
            before = last.get((_OPPOSITE[kind], target))
            if before is not None and step.step - before < UNDONE_WITHIN_STEPS:
                found.append(step.step)
            last[kind, target] = step.step
    return tuple(found)


def _kind(action: str) -> str:
    return action.partition(":")[0]


def _note(harms: int, complete: bool, certificate: Certificate | None) -> str:
    notes = []
    if harms:
        notes.append(f"{harms} times harm was done: the score is {SCORE_MIN}")
    if not complete:
        notes.append("the episode was stopped: savings and incidents are not known")
    elif certificate is None:
        notes.append(
            "no certificate ships for this seed and horizon: it is compared with a joint share of 1"
        )
    return "; ".join(notes)
