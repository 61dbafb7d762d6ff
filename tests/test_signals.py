"""Tests answer Ctrl-C, and so does what they start, however the tests themselves were started."""

from __future__ import annotations

import signal
import subprocess
import sys


def test_what_a_test_starts_can_be_interrupted() -> None:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    started = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    started.send_signal(signal.SIGINT)
    started.communicate()
    assert started.returncode == -signal.SIGINT


def test_also_behind_a_shell_that_ignores_it() -> None:
    one = f"{__file__}::{test_what_a_test_starts_can_be_interrupted.__name__}"
    ran = subprocess.run(
        ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-m", "pytest", one],
        capture_output=True,
        check=False,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout
