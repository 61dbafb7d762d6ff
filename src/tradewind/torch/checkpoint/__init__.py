"""Checkpoints that do not stop the GPU.

    checkpoints = Checkpoints(Place("checkpoints"), device="cuda")
    checkpoints.prepare(tensors)                        # memory, made ready by a thread
    found = checkpoints.newest()
    if found:
        shared, mine, own = checkpoints.read(found, tensors)
    …
    checkpoints.save(step, tensors, own, shared, mine)  # returns at once
    checkpoints.gate()                                  # before the next optimizer.step

What is saved:
`tensors`  global state by name: a plain tensor is the same on all ranks, a DTensor is sharded. Any
           number of ranks reads what any other wrote.
`own`      of this rank only, such as gradients that are not summed yet. Copied first, and training
           waits for that (on its stream), as the next backward pass would change them.
`shared`   bytes of rank 0: counters, where the data is.
`mine`     bytes of each rank: its random numbers. Own tensors and these come back to the rank of
           that number, if there are as many ranks as before.

What is promised:
- **One moment.** Everything is as it was when `save` was called, if `gate` is called before
  whatever changes tensors in place. Small ones (256 KiB) are copied in the training's own order,
  so buffers that the forward pass changes are right too; name larger such ones as `early`.
- **All or nothing.** A checkpoint exists when its manifest does, which is created last, when the
  files of all ranks are durable. Ranks agree over a `Group`: `own_group()`, which needs no
  collectives, or any process group of torch.distributed (whose store is used, not its collectives).
- **Never wrong numbers.** Each piece of 16 MiB has a check sum in the manifest. What is damaged is
  named in a warning, and the checkpoint before is read; `Restored.found` says which it was.
- **Never in the way.** A save that is due while the last is under way is skipped, with a warning.
  One that takes longer than `limit_s` (or its `deadline_s`) is given up. `save` raises InvalidValue
  for a state that cannot be saved, and nothing else.
- **Plain PyTorch reads it**, by `torch.distributed.checkpoint.load`, in `found.folder`.

`keep` newest ones stay, counted in the place itself, so also after a restart. `newest` clears away
what unfinished saves have left; it and `read` must be called by all ranks. A process that ends
calls `close` first, or the last save may be lost. place.py says where things lie.

Importing this imports neither torch nor anything that is not in the standard library.
"""

from __future__ import annotations

from tradewind.torch.checkpoint.checkpoints import Checkpoints, Restored
from tradewind.torch.checkpoint.group import Group, own_group
from tradewind.torch.checkpoint.job import Saved
from tradewind.torch.checkpoint.place import Place
from tradewind.torch.checkpoint.shelf import Found

__all__ = ["Checkpoints", "Found", "Group", "Place", "Restored", "Saved", "own_group"]
