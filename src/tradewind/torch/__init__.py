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
    from tradewind.torch.sessions.session import Session
    from tradewind.torch.sessions.session import Session as session  # noqa: N813 -- made like a function
    from tradewind.torch.strategies.prepare import prepare

__all__ = ["Session", "prepare", "session"]

_FROM = {
    "Session": ("sessions.session", "Session"),
    "session": ("sessions.session", "Session"),
    "prepare": ("strategies.prepare", "prepare"),
}
"""Where each is, below this package, and what it is called there."""


def __getattr__(name: str) -> Any:
    if name in _FROM:
        from importlib import import_module

        module, called = _FROM[name]
        return getattr(import_module(f"{__name__}.{module}"), called)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
