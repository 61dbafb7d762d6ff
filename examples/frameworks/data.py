"""Data for the examples: points on two noisy spirals, turned a little differently each time."""

import torch
from torch.utils.data import Dataset


class Spirals(Dataset):
    def __init__(self, number: int, turn: float = 0.2) -> None:
        self.number, self.turn = number, turn

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        label, radius = index % 2, (index // 2) / (self.number // 2)
        angle = torch.tensor(6 * radius + 3.14159 * label + self.turn * torch.rand(()).item())
        point = radius * torch.stack([angle.cos(), angle.sin()])
        return {"x": point + 0.02 * torch.randn(2), "labels": torch.tensor(label)}


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(2, 64),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.1),
            torch.nn.Linear(64, 64),
            torch.nn.ReLU(),
            torch.nn.Linear(64, 2),
        )

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.layers(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


def fingerprint(model: torch.nn.Module) -> str:
    """The same for weights that are the same to the bit."""
    import hashlib

    made = hashlib.sha256()
    for tensor in model.state_dict().values():
        made.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return made.hexdigest()[:16]
