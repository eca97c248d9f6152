"""The one entry of the war room. ``python run_warroom.py --help`` says what it can do."""

from __future__ import annotations

import sys

from orchestrator.cli.app import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
