"""Semi-supervised: labelled and unlabelled data, from two loaders. Or one that the session was not
given (`forgotten`)."""

from __future__ import annotations

import sys

import torch

import tradewind.torch as tw
from tests.torch.scripts.small import loader, loss_of, net


def main() -> None:
    how = sys.argv[1]
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    labelled, unlabelled = loader(20), loader(28)
    if how == "forgotten":
        session = tw.session(model=model, optimizer=optimizer)
        for _ in range(4):
            for x, y in labelled:
                loss = loss_of(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                session.step(loss=loss)
        return
    session = tw.session(model=model, optimizer=optimizer, data=labelled)
    more = session.stream(unlabelled) if how == "stream" else iter(unlabelled)
    for x, y in session.batches(max_steps=40):
        try:
            u, _ = next(more)
        except StopIteration:
            more = iter(unlabelled)
            u, _ = next(more)
        loss = loss_of(model(x), y) + model(u).softmax(1).var()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        session.step(loss=loss, u=u.sum())
