"""In the style of torchvision's references: `for epoch in range(N)` is kept, and only the inner
loader is exchanged. The scheduler is stepped once an epoch, and was not given to the session."""

from __future__ import annotations

import torch

import tradewind.torch as tw
from tests.torch.scripts.small import loader, loss_of, net


def train_one_epoch(model, optimizer, session):
    model.train()
    for x, y in session.batches():
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        session.step(loss=loss)


def main() -> None:
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    session = tw.session(model=model, optimizer=optimizer, data=loader(20))
    for _epoch in range(6):
        train_one_epoch(model, optimizer, session)
        scheduler.step()
    session.finish()
