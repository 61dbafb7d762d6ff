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

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tradewind.torch._session import Session

__all__ = ["Session", "session"]


def session(
    *,
    model: Any,
    optimizer: Any,
    scheduler: Any = None,
    data: Any = None,
    scaler: Any = None,
    ema: Any = None,
    powersgd: Any = None,
    extra: Mapping[str, Any] | None = None,
    config: Any = None,
    folder: str | Path | None = None,
    seed: int | None = None,
    every_s: float | None = None,
    every_steps: int | None = None,
    keep: int | None = None,
    grace_s: float = 25.0,
    strict: bool = False,
) -> Session:
    """A training that goes on from its newest checkpoint, if there is one.

    `model`, `optimizer`, `scheduler`, `scaler` and `ema` may each be one object, a list or a table
    of them. `extra` names more objects that have state_dict and load_state_dict. `data` is an
    ordinary DataLoader. Checkpoints go to the run's store under `tradewind run`, else to `folder`
    (`checkpoints`). `seed` orders and augments the data; by default it is PyTorch's.

    Saves come as often as the run says, or `every_s` seconds or `every_steps` steps; without all
    that, every ten minutes. After a notice there are `grace_s` seconds. What has changed since the
    checkpoint, of the code, `config` or the data, is said; with `strict` it is an error."""
    from tradewind.torch._session import Session

    return Session(
        model=model,
        optimizer=optimizer,
        scheduler=scheduler,
        data=data,
        scaler=scaler,
        ema=ema,
        powersgd=powersgd,
        extra=extra,
        config=config,
        folder=folder,
        seed=seed,
        every_s=every_s,
        every_steps=every_steps,
        keep=keep,
        grace_s=grace_s,
        strict=strict,
    )


def __getattr__(name: str) -> Any:
    if name == "Session":
        from tradewind.torch._session import Session

        return Session
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
