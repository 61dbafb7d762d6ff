"""Lightning, resumable by one line."""

import pytorch_lightning as pl
import torch
from data import Net, Spirals, fingerprint
from torch.utils.data import DataLoader

import tradewind.torch as tw


class Module(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = Net()

    def training_step(self, batch: dict, batch_idx: int) -> torch.Tensor:
        return self.net(**batch)["loss"]

    def validation_step(self, batch: dict, batch_idx: int) -> None:
        self.log("val_loss", self.net(**batch)["loss"])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=0.01)


pl.seed_everything(1)
module = Module()
trainer = pl.Trainer(
    max_epochs=30,
    callbacks=[tw.LightningCallback()],  # this one
    enable_checkpointing=False,
    enable_progress_bar=False,
    logger=False,
)
loader = DataLoader(Spirals(512), 16, shuffle=True, num_workers=2)
trainer.fit(module, loader, DataLoader(Spirals(128, turn=0.0), 16))
print("weights", fingerprint(module))
