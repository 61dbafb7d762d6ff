"""The command line. One file a command, each imported only when it is called; they parse what the
user typed and render what the library answers, and decide nothing."""

from __future__ import annotations


def main() -> None:
    import os
    import sys

    # Closed by whoever started us (`>&-`): then what is written goes nowhere.
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")

    from tradewind.cli.app import run

    sys.exit(run(sys.argv[1:]))
