"""Accelerate, in the style of its own examples: `completed_steps` counts, and ends the training."""

from __future__ import annotations

import sys
from typing import Any

import torch
from accelerate import Accelerator

import tradewind.torch as tw
from tests.torch.scripts.small import loader as plain_loader
from tests.torch.scripts.small import loss_of, net

MOST = 60


def main() -> None:
    own = sys.argv[1] in ("own", "seeded")
    options: dict[str, Any] = {"seed": 0} if sys.argv[1] == "seeded" else {}
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95)
    model, optimizer, loader, scheduler = accelerator.prepare(
        model, optimizer, plain_loader(), scheduler
    )
    loader = tw.accelerate(accelerator, model, optimizer, loader, scheduler=scheduler, **options)
    completed_steps = 0
    for _epoch in range(20):
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = loss_of(model(x), y)
                accelerator.backward(loss)
                if own:
                    optimizer.param_groups[0]["lr"] = 0.01 / (1 + completed_steps)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                completed_steps += 1
            if (completed_steps if own else loader.step_number) >= MOST:
                break
    accelerator.end_training()
