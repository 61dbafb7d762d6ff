"""Environments of a library: below wrappers, side by side (`vector`), in a list (`list`), or an
attribute of an agent (`agent`); `ended` saves where episodes end, and `extra` keeps their state."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch

import tradewind.torch as tw
from tests.torch.scripts.small import loss_of, net


class Cart:
    """An episode is four steps; it begins somewhere, and drifts."""

    action_space = 2

    def reset(self, seed: int | None = None) -> Any:
        if seed is not None:
            self.np_random = np.random.default_rng(seed)
        self.at, self.place = 0, self.np_random.normal(size=6)
        return self.place

    def step(self, action: int) -> tuple[Any, bool]:
        self.at += 1
        self.place = self.place + 0.1 * action + 0.01 * self.np_random.normal(size=6)
        return self.place, self.at == 4


class Wrapper:
    action_space = 2

    def __init__(self, env: Any) -> None:
        self.env = env

    def reset(self, seed: int | None = None) -> Any:
        return self.env.reset(seed)

    def step(self, action: int) -> tuple[Any, bool]:
        made: tuple[Any, bool] = self.env.step(action)
        return made


class Vector(Wrapper):
    def __init__(self, envs: list[Any]) -> None:
        self.envs = envs

    def reset(self, seed: int | None = None) -> Any:
        seeds = [None if seed is None else seed + number for number in range(len(self.envs))]
        return np.stack([env.reset(each) for env, each in zip(self.envs, seeds, strict=True)])

    def step(self, action: Any) -> tuple[Any, bool]:
        made = [env.step(int(each)) for env, each in zip(self.envs, action, strict=True)]
        return np.stack([place for place, _ in made]), made[0][1]


Cart.__module__ = Wrapper.__module__ = Vector.__module__ = "environing"


class Agent:
    def __init__(self, envs: Any) -> None:
        self.envs = envs


class Kept:
    """The state of each environment, as a script may keep it."""

    def __init__(self, envs: Any) -> None:
        self.envs = envs

    def _carts(self) -> list[Any]:
        found = []
        for each in self.envs.envs:
            while hasattr(each, "env"):
                each = each.env
            found.append(each)
        return found

    def state_dict(self) -> dict[str, Any]:
        carts = [each for each in self._carts() if hasattr(each, "place")]
        return {"states": [[each.at, each.place.tolist()] for each in carts]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.states = state["states"]

    def begin(self) -> None:
        for cart, (at, place) in zip(self._carts(), getattr(self, "states", []), strict=False):
            cart.at, cart.place = at, np.array(place)


def deep(number: int) -> Any:
    made: Any = Cart()
    for _ in range(number):
        made = Wrapper(made)
    return made


def main() -> None:
    how = sys.argv[1]
    torch.manual_seed(0)
    model = net().eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    envs = Vector([deep(8) for _ in range(4)])
    keeps = Kept(envs)
    agent = Agent(envs)
    each_env = envs.envs
    if how == "agent":
        del envs, each_env
    elif how == "list":
        del envs, agent.envs
    extra = {"environment": keeps} if how == "extra" else None
    session = tw.session(model=model, optimizer=optimizer, extra=extra)
    if how == "list":
        place = np.stack([env.reset(number) for number, env in enumerate(each_env)])
    else:
        place = keeps.envs.reset(7)
    if how == "extra":
        keeps.begin()
    if session.resumed and how == "extra":
        place = np.stack([each.place for each in keeps._carts()])
    for step in session.steps(40):
        if how == "ended" and step % 4 == 0:
            place = keeps.envs.reset()
        x = torch.tensor(place, dtype=torch.float32)
        scores = model(x)
        actions = scores.argmax(1).tolist()
        if how == "list":
            made = [env.step(action) for env, action in zip(each_env, actions, strict=True)]
            place, over = np.stack([each for each, _ in made]), made[0][1]
            if over:
                place = np.stack([env.reset() for env in each_env])
        else:
            place, over = keeps.envs.step(actions)
            if over and how != "ended":
                place = keeps.envs.reset()
        loss = loss_of(scores, (x.sum(1) > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        session.step(loss=loss)


if __name__ == "__main__":
    main()
