"""Averages of the weights under frameworks: `python averages.py FOLDER FRAMEWORK WHERE`. They are
not handed over, but for `extra`, and for what the framework keeps (`callback`)."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

import tradewind.torch as tw
from tests.torch.frameworks.common import Net, Samples, begun
from tests.torch.scripts.averages import Shadows

STEPS = 12


class Module(nn.Module):
    """As most do: a copy of the model that is blended with it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.average = copy.deepcopy(model).requires_grad_(False)

    def step(self, model: nn.Module) -> None:
        for mine, theirs in zip(self.average.parameters(), model.parameters(), strict=True):
            mine.lerp_(theirs.detach(), 0.1)


class Everything:
    """A trainer of the script's own, around the framework's."""

    def __init__(self, model: nn.Module, where: str) -> None:
        self.ema: Any = Module(model) if where == "copy" else Shadows(model.parameters())
        self.model = model

    def update(self) -> None:
        given = self.model if isinstance(self.ema, Module) else list(self.model.parameters())
        self.ema.step(given)


def accelerated(folder: Path, where: str) -> None:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model: Any = Net()
    everything = Everything(model, where)
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.02)
    loader: Any = DataLoader(Samples(48), 4, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    extra = {"ema": everything.ema} if where == "extra" else {}
    loader = tw.accelerate(accelerator, model, optimizer, loader, folder=folder / "c", extra=extra)
    for batch in loader:
        accelerator.backward(model(**batch)["loss"])
        optimizer.step()
        optimizer.zero_grad()
        everything.update()
        accelerator.log({"step": 7, "decay": loader.step_number / 10})
    accelerator.log({"tested": 1.0})
    accelerator.end_training()


def lightning(folder: Path, where: str) -> None:
    import pytorch_lightning as pl

    class Averaging(pl.Callback):
        ema: Any = None

        def on_fit_start(self, trainer: Any, module: Any) -> None:
            self.ema = Everything(module.net, "library" if where == "callback" else where)

        def on_train_batch_end(self, *_: Any) -> None:
            self.ema.update()

        def state_dict(self) -> dict[str, Any]:
            return self.ema.ema.state_dict() if where == "callback" else {}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            self.ema.ema.load_state_dict(state)

    class Light(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

        def training_step(self, batch: Any, _: int) -> Any:
            return self.net(**batch)["loss"]

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.02)

    trainer = pl.Trainer(
        max_epochs=1,
        default_root_dir=folder,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[Averaging(), tw.LightningCallback(folder=folder / "c")],
    )
    trainer.fit(Light(), DataLoader(Samples(48), 4, shuffle=True))


def hf(folder: Path, where: str) -> None:
    import transformers

    model = Net()
    everything = Everything(model, where)

    class Averaging(transformers.TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            everything.update()

    args = transformers.TrainingArguments(
        str(folder / "out"),
        num_train_epochs=1,
        per_device_train_batch_size=4,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        save_strategy="no",
    )
    trainer = transformers.Trainer(model, args, train_dataset=Samples(48), callbacks=[Averaging()])
    extra = {"ema": everything.ema} if where == "extra" else {}
    tw.hf(trainer, folder=folder / "c", extra=extra).train()


def main() -> None:
    begun(3)
    frameworks = {"accelerated": accelerated, "lightning": lightning, "hf": hf}
    frameworks[sys.argv[2]](Path(sys.argv[1]), sys.argv[3])


if __name__ == "__main__":
    main()
