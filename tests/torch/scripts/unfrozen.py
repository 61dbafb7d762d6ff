"""Fine-tuning: the backbone is frozen for an epoch, and then trained too. Statistics of a layer are
switched on with it."""

from __future__ import annotations

import torch
from torch import nn

import tradewind.torch as tw
from tests.torch.scripts.small import loader, loss_of


def main() -> None:
    torch.manual_seed(0)
    backbone = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU())
    model = nn.Sequential(backbone, nn.Linear(16, 2))
    backbone.requires_grad_(False)
    backbone[1].track_running_stats = False
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    session = tw.session(model=model, optimizer=optimizer, data=loader(12))
    for epoch in session.epochs(12):
        if epoch == 1:
            backbone.requires_grad_(True)
            backbone[1].track_running_stats = True
        for x, y in session.batches():
            loss = loss_of(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            session.step(loss=loss)
