"""Numbers that seeds are made of. Pure."""

from __future__ import annotations

_WORD = (1 << 64) - 1


def mixed(*numbers: int) -> int:
    """64 bits that depend on every bit of the numbers (splitmix64, one round for each): seeds that
    are near each other must not make samples that are alike."""
    state = 0x9E3779B97F4A7C15
    for number in numbers:
        state = (state ^ (number & _WORD)) + 0x9E3779B97F4A7C15 & _WORD
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _WORD
        state = (state ^ state >> 27) * 0x94D049BB133111EB & _WORD
        state ^= state >> 31
    return state
