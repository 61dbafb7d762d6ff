"""What each optimizer keeps of a trained weight."""

from __future__ import annotations

COPY = 4  # the weight itself in 32 bits, where it is held in 16

# Bytes beside that copy: moments, momentum, or next to nothing where they are factored.
STATE = {
    "adamw": 8.0,
    "adamw-8bit": 2.0,
    "lion": 4.0,
    "muon": 4.0,
    "sgd-momentum": 4.0,
    "adafactor": 0.1,
    "sgd": 0.0,
}


def state_bytes(name: str, *, weight_bytes: float, pure: bool = False) -> float:
    """Of a trained weight, its 32-bit copy included if the weight itself is not in 32 bits.

    `pure`: there is none, and moments are in 16 bits like the weight.
    """
    if pure:
        return STATE[name] if STATE[name] < COPY else STATE[name] / 2
    return STATE[name] + (0 if weight_bytes >= COPY else COPY)
