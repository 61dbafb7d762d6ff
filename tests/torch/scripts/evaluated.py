"""Evaluations that are nobody's business: workers that persist, once an epoch (`epoch`) or every
few steps (`steps`), or without any (`plain`). `kept` is an iterator that is never at its beginning,
and `target` a second network that is first changed when the first steps are long over."""

from __future__ import annotations

import copy
import sys
from typing import Any

import torch

import tradewind.torch as tw
from tests.torch.scripts.small import dataset, loader, loss_of, net


def main() -> None:
    how = sys.argv[1]
    torch.manual_seed(0)
    model = net()
    target = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    workers = 0 if how in ("plain", "kept", "target") else 1
    tested: Any = torch.utils.data.DataLoader(
        dataset(), 16, num_workers=workers, persistent_workers=workers > 0
    )
    kept = iter(tested)

    def evaluate() -> float:
        model.eval()
        with torch.no_grad():
            found = sum(loss_of(model(x), y).item() for x, y in tested)
        model.train()
        return float(found)

    session = tw.session(model=model, optimizer=optimizer, data=loader())
    for _ in session.epochs(3):
        for x, y in session.batches():
            optimizer.zero_grad()
            loss = loss_of(model(x), y)
            loss.backward()
            optimizer.step()
            told = 0.0
            if how == "steps" and session.step_number % 2:
                told = evaluate()
            elif how == "kept" and session.step_number % 5 == 4:
                told = float(next(kept)[0].sum())
            elif how == "target" and session.step_number == 8:
                target.load_state_dict(model.state_dict())
            session.step(loss=loss, told=told)
        if how != "kept":
            evaluate()
    print("ended", session.step_number)  # noqa: T201


if __name__ == "__main__":
    main()
