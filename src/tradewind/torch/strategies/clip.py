"""The norm of gradients that lie in parts on several ranks, and its limit."""

from __future__ import annotations

from typing import Any


def clip(model: Any, most: float, *, stages: int, alike: bool) -> Any:
    """Scales gradients so that their norm over the whole model is `most` at most; returns what it
    was. Where ranks have different parts, each adds up its own, counting what several hold in
    shares, and one reduction does the rest."""
    import torch
    import torch.distributed as dist

    grads = [p.grad for p in model.parameters() if p.grad is not None]
    if alike:
        return torch.nn.utils.clip_grad_norm_(model.parameters(), most)
    world = dist.get_world_size()
    total = torch.zeros((), dtype=torch.float32, device=_device(model))
    for grad in grads:
        held = grad.to_local() if hasattr(grad, "to_local") else grad
        copies = world / stages / _parts(grad)
        total += held.float().square().sum() / copies
    dist.all_reduce(total)
    norm = total.sqrt()
    scale = torch.clamp(most / (norm + 1e-6), max=1.0)
    for grad in grads:
        held = grad.to_local() if hasattr(grad, "to_local") else grad
        held.mul_(scale)
    return norm


def _parts(grad: Any) -> int:
    """Into how many a DTensor is cut."""
    parts = 1
    if hasattr(grad, "placements"):
        for placement, size in zip(grad.placements, grad.device_mesh.shape, strict=True):
            parts *= 1 if placement.is_replicate() else size
    return parts


def _device(model: Any) -> Any:
    return next(iter(model.parameters())).device
