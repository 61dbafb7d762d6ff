"""GANs. The generator's backward pass leaves gradients in the discriminator, which are cleared
first thing in the next step: by its optimizer (`optimizer`), by the module (`module`), or of three
networks at once (`three`); `accumulated` over two batches. `zeros`: cleared to zeros, which cannot
be known."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import nn

import tradewind.torch as tw
from tests.torch.scripts.small import loader


def main() -> None:
    how = sys.argv[1]
    torch.manual_seed(0)
    critics = [nn.Linear(6, 1) for _ in range(2 if how == "three" else 1)]
    maker = nn.Linear(3, 6)
    optimizers = [torch.optim.Adam(each.parameters(), 0.05) for each in critics]
    making = torch.optim.Adam(maker.parameters(), 0.05)
    every = 2 if how == "accumulated" else 1
    session = tw.session(model=[*critics, maker], optimizer=[*optimizers, making], data=loader())
    for number, (x, _) in session.enumerate(max_steps=400):
        noise = torch.randn(len(x), 3)
        for critic, optimizer in zip(critics, optimizers, strict=True):
            if number % every == 0:
                if how == "module":
                    critic.zero_grad()
                else:
                    optimizer.zero_grad(set_to_none=how != "zeros")
            (critic(maker(noise).detach()).mean() - critic(x).mean()).backward()
            if (number + 1) % every == 0:
                optimizer.step()
        loss: Any = -sum(critic(maker(noise)).mean() for critic in critics)
        if number % every == 0:
            making.zero_grad()
        if (number + 1) % every == 0:
            loss.backward()
            making.step()
        session.step(loss=loss)


if __name__ == "__main__":
    main()
