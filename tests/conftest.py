from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Before anything is imported that reads it: the tests see nobody's own catalog or account.
os.environ["TRADEWIND_HOME"] = tempfile.mkdtemp(prefix="tradewind-tests-")

from tests.local_http import LocalHttp

atexit.register(shutil.rmtree, os.environ["TRADEWIND_HOME"], ignore_errors=True)

# Behind a shell (`make test &` in a script) SIGINT is ignored, also by every process that a test
# starts: but some of them are to be interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A slow machine must not fail a test, and a failure must come again.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")


@pytest.fixture
def server() -> Iterator[LocalHttp]:
    with LocalHttp() as running:
        yield running
