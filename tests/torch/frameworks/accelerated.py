"""A training by Accelerate: `python accelerated.py FOLDER`."""

from __future__ import annotations

from typing import Any

import torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from torch.utils.data import DataLoader

import tradewind.torch as tw
from tests.torch.frameworks.common import Net, begun, data, parsed, stepped, written


class Best:
    """A script's own memory, registered for checkpointing."""

    def __init__(self) -> None:
        self.loss, self.epochs = float("inf"), 0

    def state_dict(self) -> dict[str, float]:
        return {"loss": self.loss, "epochs": self.epochs}

    def load_state_dict(self, state: dict[str, float]) -> None:
        self.loss, self.epochs = state["loss"], int(state["epochs"])


def main() -> None:
    given = parsed()
    begun(3)
    plugin = FullyShardedDataParallelPlugin(fsdp_version=2) if given.fsdp else None
    accelerator = Accelerator(
        cpu=True, gradient_accumulation_steps=given.accumulate, fsdp_plugin=plugin
    )
    model: Any = Net()
    optimizer: Any = torch.optim.AdamW(model.parameters(), lr=0.02)
    scheduler: Any = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 160)
    shuffle = None if given.stream else True
    loader: Any = DataLoader(data(given), given.batch, shuffle=shuffle, num_workers=given.workers)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    best = Best()
    accelerator.register_for_checkpointing(best)
    loader = tw.accelerate(
        accelerator,
        model,
        optimizer,
        loader,
        scheduler=scheduler,
        folder=given.folder / "checkpoints",
        every_steps=given.every_steps,
        every_s=given.every_s,
    )
    for _ in loader.epochs(given.epochs) if given.best else range(given.epochs):
        for batch in loader:
            with accelerator.accumulate(model):
                loss = model(**batch)["loss"]
                accelerator.backward(loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            best.loss = min(best.loss, loss.item())
            if accelerator.sync_gradients:
                stepped(given, loader.step_number)
        best.epochs += 1
        for group in optimizer.param_groups:
            group["lr"] *= 0.8
    accelerator.end_training()
    print("ended", loader.step_number, best.loss, best.epochs, scheduler.get_last_lr())  # noqa: T201
    written(given, accelerator.unwrap_model(model), accelerator.process_index)


if __name__ == "__main__":
    main()
