"""A GAN, with two models and two optimizers that take turns, and an attack on the inputs that has
an optimizer of its own for each step."""

from __future__ import annotations

import torch
from torch import nn

import tradewind.torch as tw
from tests.torch.scripts.small import loader


def main() -> None:
    torch.manual_seed(0)
    generator, critic = nn.Linear(3, 6), nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
    of_generator = torch.optim.Adam(generator.parameters(), lr=0.01)
    of_critic = torch.optim.Adam(critic.parameters(), lr=0.01)
    session = tw.session(
        model={"generator": generator, "critic": critic},
        optimizer={"generator": of_generator, "critic": of_critic},
        data=loader(),
    )
    for i, (x, _) in session.enumerate(epochs=4):
        delta = torch.zeros_like(x, requires_grad=True)
        attack = torch.optim.SGD([delta], lr=0.1)
        (-critic(x + delta).mean()).backward()
        attack.step()
        fake = generator(torch.randn(len(x), 3))
        loss = critic(fake.detach()).mean() - critic(x + delta.detach()).mean()
        of_critic.zero_grad()
        loss.backward()
        of_critic.step()
        if i % 3 == 2:
            of_generator.zero_grad()
            (-critic(generator(torch.randn(len(x), 3))).mean()).backward()
            of_generator.step()
        session.step(loss=loss)
