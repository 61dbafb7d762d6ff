"""A training by Lightning: `python lightning.py FOLDER`."""

from __future__ import annotations

import os
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from torch.utils.data import DataLoader

import tradewind.torch as tw
from tests.torch.frameworks.common import Net, Samples, begun, data, parsed, stepped, written


class Module(pl.LightningModule):
    def __init__(self, given: Any) -> None:
        super().__init__()
        self.given, self.net = given, Net()
        self.seen = 0

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = self.net(**batch)["loss"]
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.log("val_loss", self.net(**batch)["loss"], sync_dist=True)

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.seen += 1
        stepped(self.given, self.trainer.global_step)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["seen"] = self.seen

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.seen = checkpoint["seen"]

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.02)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 80)
        return [optimizer], [{"scheduler": scheduler, "interval": "step"}]


def main() -> None:
    given = parsed()
    begun(3)
    world = int(os.environ.get("WORLD_SIZE", "1"))
    callbacks: list[Any] = [
        tw.LightningCallback(
            folder=given.folder / "checkpoints",
            every_steps=given.every_steps,
            every_s=given.every_s,
        )
    ]
    if given.best:
        best = ModelCheckpoint(given.folder / "best", monitor="val_loss", save_top_k=1)
        callbacks += [EarlyStopping("val_loss", patience=4), best]
    trainer = pl.Trainer(
        max_epochs=given.epochs,
        accelerator="cpu",
        devices=world,
        strategy="ddp" if world > 1 else "auto",
        accumulate_grad_batches=given.accumulate,
        default_root_dir=given.folder,
        callbacks=callbacks,
        val_check_interval=6 if given.best else None,
        enable_checkpointing=given.best,
        enable_progress_bar=False,
        enable_model_summary=False,
        logger=False,
    )
    module = Module(given)
    shuffle = None if given.stream else True
    train = DataLoader(data(given), given.batch, shuffle=shuffle, num_workers=given.workers)
    validation = DataLoader(Samples(20, noise=0.0), given.batch) if given.best else None
    trainer.fit(module, train, validation, ckpt_path=given.resume or None)
    loops = trainer.fit_loop.epoch_loop
    print("ended", trainer.global_step, trainer.current_epoch, loops._batches_that_stepped)  # noqa: T201
    print("log", module.seen, trainer.callback_metrics.get("val_loss"))  # noqa: T201
    if given.best:
        saved = os.path.basename(best.best_model_path)  # noqa: PTH119
        print("log", saved, best.best_model_score, callbacks[1].wait_count)  # noqa: T201
    written(given, module, trainer.global_rank)


if __name__ == "__main__":
    main()
