"""``doctor``: what is installed, which store would be used, and whether it answers."""

from __future__ import annotations

from orchestrator.cli import options, printing
from orchestrator.console.text import plain


def doctor(
    store: options.Store = None,
    out: options.Out = None,
    as_json: options.Json = False,
) -> int:
    """Check that the default job can run here.

    Exit status 0 when it can, 3 when a needed service or package is missing, 1 when something
    else is in the way.
    """
    from orchestrator.doctor import examine
    from orchestrator.settings import load_settings, unknown_variables

    resolved = load_settings(options.given(store=store, out=out))
    report = examine(resolved, unknown_variables())
    if as_json:
        printing.document(report.as_json())
    else:
        marks = {True: "ok", False: "FAIL", None: "-"}
        printing.columns([(marks[check.ok], check.name, check.note) for check in report.checks])
        for check in report.checks:
            if check.ok is False and check.fix:
                printing.talk(f"{check.name}: {plain(check.fix)}")
    return report.exit_code
