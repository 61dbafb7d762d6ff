"""`python -m tests.supervisor.fast_supervisor SPEED boot.json`: a supervisor in a process of its
own, whose clock runs faster."""

from __future__ import annotations

import sys

from tradewind.supervisor.__main__ import main

sys.exit(main(sys.argv[2:], speed=float(sys.argv[1])))
