"""The command line. One file a command, each imported only when it is called; they parse what the
user typed and render what the library answers, and decide nothing."""

from __future__ import annotations


def main() -> None:
    import sys

    from tradewind.cli.app import run

    sys.exit(run(sys.argv[1:]))
