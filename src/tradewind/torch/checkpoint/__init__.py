"""Checkpoints that do not stop the GPU.

checkpoints = Checkpoints(Place("checkpoints"), device="cuda")
checkpoints.prepare(tensors)
…
checkpoints.save(step, tensors, {}, b"what rank 0 knows", b"what this rank knows")
checkpoints.gate()          # before the next optimizer.step
"""

from __future__ import annotations

from tradewind.torch.checkpoint.checkpoints import Checkpoints, Restored, Saved
from tradewind.torch.checkpoint.group import Group, own_group
from tradewind.torch.checkpoint.place import Place
from tradewind.torch.checkpoint.shelf import Found

__all__ = ["Checkpoints", "Found", "Group", "Place", "Restored", "Saved", "own_group"]
