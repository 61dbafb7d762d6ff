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
    from tradewind.torch.frameworks.accelerated import accelerate
    from tradewind.torch.frameworks.huggingface import hf
    from tradewind.torch.frameworks.lightning import LightningCallback
    from tradewind.torch.sessions.session import Session
    from tradewind.torch.sessions.session import Session as session  # noqa: N813 -- made like a function
    from tradewind.torch.strategies.prepare import prepare

__all__ = [
    "LightningCallback",
    "Session",
    "accelerate",
    "download",
    "hf",
    "index_shards",
    "loader",
    "prepare",
    "session",
    "shards",
    "tokens",
    "write_shards",
    "write_tokens",
]

_FROM = {
    "LightningCallback": "frameworks.lightning",
    "Session": "sessions.session",
    "accelerate": "frameworks.accelerated",
    "download": "data.download",
    "hf": "frameworks.huggingface",
    "index_shards": "data.shards",
    "loader": "data.loader",
    "prepare": "strategies.prepare",
    "session": "sessions.session",
    "shards": "data.shards",
    "tokens": "data.tokens",
    "write_shards": "data.shards",
    "write_tokens": "data.tokens",
}
"""Where each is, below this package."""


def __getattr__(name: str) -> Any:
    if name in _FROM:
        from importlib import import_module

        module = import_module(f"{__name__}.{_FROM[name]}")
        return getattr(module, "Session" if name == "session" else name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
