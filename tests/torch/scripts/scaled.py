"""Mixed precision with a gradient scaler, an averaged model and a warm-up that nobody gave to the
session; or that are made after it (`late`)."""

from __future__ import annotations

import sys

import torch
from torch.optim.swa_utils import AveragedModel

import tradewind.torch as tw
from tests.torch.scripts.small import loader, loss_of, net


def main() -> None:
    how = sys.argv[1]
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if how == "early":
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.5, total_steps=100)
        scaler = torch.amp.GradScaler("cpu", init_scale=64, growth_interval=5)
        average = AveragedModel(model)
    session = tw.session(model=model, optimizer=optimizer, data=loader())
    if how != "early":
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.5, total_steps=100)
        scaler = torch.amp.GradScaler("cpu", init_scale=64, growth_interval=5)
        average = AveragedModel(model)
    for x, y in session.batches(max_steps=40):
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        average.update_parameters(model)
        of_average = sum(p.double().sum() for p in average.parameters())
        session.step(loss=loss, scale=scaler.get_scale(), average=of_average)
