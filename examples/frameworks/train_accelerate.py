"""Accelerate, resumable by one line."""

import torch
from accelerate import Accelerator
from data import Net, Spirals, fingerprint
from torch.utils.data import DataLoader

import tradewind.torch as tw

torch.manual_seed(1)
accelerator = Accelerator()
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30 * 32)
loader = DataLoader(Spirals(512), 16, shuffle=True, num_workers=2)
model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
loader = tw.accelerate(accelerator, model, optimizer, loader, scheduler=scheduler)  # this one
for _ in range(30):
    for batch in loader:
        accelerator.backward(model(**batch)["loss"])
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
accelerator.end_training()
if accelerator.is_main_process:
    print("weights", fingerprint(accelerator.unwrap_model(model)))
