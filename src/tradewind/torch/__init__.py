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
    from tradewind.torch.data.download import download
    from tradewind.torch.data.loader import loader
    from tradewind.torch.data.shards import index_shards, shards, write_shards
    from tradewind.torch.data.tokens import tokens, write_tokens
    from tradewind.torch.sessions.session import Session
    from tradewind.torch.sessions.session import Session as session  # noqa: N813 -- made like a function

_SESSION, _DATA = "tradewind.torch.sessions.session", "tradewind.torch.data"
_WHERE = {
    "Session": (_SESSION, "Session"),
    "download": (f"{_DATA}.download", "download"),
    "index_shards": (f"{_DATA}.shards", "index_shards"),
    "loader": (f"{_DATA}.loader", "loader"),
    "session": (_SESSION, "Session"),
    "shards": (f"{_DATA}.shards", "shards"),
    "tokens": (f"{_DATA}.tokens", "tokens"),
    "write_shards": (f"{_DATA}.shards", "write_shards"),
    "write_tokens": (f"{_DATA}.tokens", "write_tokens"),
}
"""Each name, the module that it is in, and its name there."""

__all__ = [
    "Session",
    "download",
    "index_shards",
    "loader",
    "session",
    "shards",
    "tokens",
    "write_shards",
    "write_tokens",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        from importlib import import_module

        module, attribute = _WHERE[name]
        return getattr(import_module(module), attribute)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
