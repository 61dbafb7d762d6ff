"""What needs PyTorch. Importing this does not import it: the functions do, where they use it.

A few lines make a training loop resumable to the bit, checkpointed beside the training, and ready
for machines that are taken away:

    import tradewind.torch as tw

    session = tw.session(model=model, optimizer=optimizer, scheduler=scheduler, data=loader)
    for batch in session.batches(max_steps=10_000):
        loss = compute(model, batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        session.step(loss=loss)

docs/torch.md is its page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tradewind.torch.frameworks.accelerated import accelerate
    from tradewind.torch.frameworks.huggingface import hf
    from tradewind.torch.frameworks.lightning import LightningCallback
    from tradewind.torch.sessions.session import Session
    from tradewind.torch.sessions.session import Session as session  # noqa: N813 -- made like a function

__all__ = ["LightningCallback", "Session", "accelerate", "hf", "session"]

_ROOMS = {
    "Session": ("sessions.session", "Session"),
    "session": ("sessions.session", "Session"),
    "hf": ("frameworks.huggingface", "hf"),
    "LightningCallback": ("frameworks.lightning", "LightningCallback"),
    "accelerate": ("frameworks.accelerated", "accelerate"),
}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        from importlib import import_module

        room, inside = _ROOMS[name]
        return getattr(import_module(f"{__name__}.{room}"), inside)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
