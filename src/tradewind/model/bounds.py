"""How large each kind of object of places.py may be, and what is in it: the one list of sizes, in
bytes where nothing else is said. How large numbers may be is in plausible.py.

Machines may write below their run's folder, so a reader takes no more than this: what is larger is
TooLarge (store/base.py) and is not read. Each is several times what Tradewind itself writes; other
objects have the store's bound for all.
"""

from __future__ import annotations

KIB, MIB = 1 << 10, 1 << 20

COMMIT = 8 * MIB  # the first has the plan's options, a few hundred bytes each
VOLUME = 64 * MIB  # a thousand commits; where they are larger, there is no volume
HEARTBEAT = 256 * KIB  # its longest parts are the job's last output and figures of each rank
POINTER = 1 * KIB  # `address` and `resume`: a name
FIRST_LOG = 1 * MIB
PIECE = 1 * MIB  # of logs and metrics: a longer one is never written
CHECKPOINT = 64 * MIB  # a manifest: a line for each file of each rank
OUTPUTS = 16 * MIB  # a list: a line for each of at most ten thousand files
INDEX = 512 * MIB  # of a checkpoint's tensors: INDEX_RANK for each rank at most
INDEX_RANK = 16 * MIB  # ten thousand tensors, and what their optimizer keeps
DIMENSIONS = 64  # of a tensor: PyTorch's own bound
LINE = 1 * MIB  # of metrics; the rest of a longer one is taken for another, which says nothing
PASS = 64 * KIB  # what a machine is lent: a token of a few kilobytes at most
RECORD = 1 * MIB  # small documents: who is at work, how a run is interrupted, what was chosen
BUNDLE = 256 * MIB  # 100 MB of files at most, and an archive's headers
