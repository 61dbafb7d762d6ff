"""Machines that are process groups on this computer: a provider without a cloud.

provider.py       list, launch, terminate, interrupt
host.py           a machine's hardware: a process that keeps its supervisor, and takes it away
files.py          everything that lies on disk, and the locks
processes.py      what runs of a machine, and how it is killed
interruptions.py  when spot machines can be had, and when they are taken
trace.py          real spot availability, read from a file
"""

from tradewind.providers.local.interruptions import Chaos, Replay
from tradewind.providers.local.provider import FACTS, LocalProvider

__all__ = ["FACTS", "Chaos", "LocalProvider", "Replay"]
