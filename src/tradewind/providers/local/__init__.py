"""Machines that are process groups on this computer: a provider without a cloud.

provider.py       LocalProvider: list, launch, terminate, interrupt; FACTS
host.py           a machine's hardware: a process that keeps its supervisor, and takes it away
files.py          everything that lies on disk, and the locks
processes.py      what runs of a machine, and how it is killed
interruptions.py  Chaos, Replay: when spot machines can be had, and when they are taken
trace.py          real spot availability, read from a file

Nothing is imported here: every machine has a host, which would have to wait for it.
"""
