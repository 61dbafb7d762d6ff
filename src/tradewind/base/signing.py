"""What a machine writes into a shared store, signed, so that no other machine can write it instead.

Every machine of a store may write where machines write, whoever's run it is. So each launch has a
key of its own: it is made from the store's seed, which machines cannot read, and is handed to the
machines at boot and never through the store. Whoever has the seed can make every key again, so
nothing has to be kept for each run. An HMAC and no public key: both ends are ours, and the standard
library has it on every machine.

What a machine is given is two keys in one text: the key of its launch, and one that all launches of
its run share. With that it signs what later legs of the run read, who know no key of earlier ones:
the lists of outputs.

A signed object is its bytes, a newline, and 64 hex digits over its purpose and the bytes. The
purpose keeps one object from being passed off as another.
"""

from __future__ import annotations

import hmac

SEED = "keys/seed"
"""Where it lies in a store; machines have no right to read below `keys/`."""
SEED_BYTES = 32
HEARTBEAT, RESUME, ADDRESS, FRONT = "heartbeat", "resume", "address", "front"
OUTPUTS = "outputs"
"""What is signed."""
_OF_RUN = (OUTPUTS,)
"""By any launch of a run, for all of them."""
_LONG = 64


def key_of(seed: bytes, launch_id: str) -> str:
    """What the machines of this launch sign with."""
    return hmac.digest(seed, b"launch\n" + launch_id.encode("utf-8", "replace"), "sha256").hex()


def key_of_run(seed: bytes, run_id: str) -> str:
    """What all launches of this run sign with, where one reads what another wrote."""
    return hmac.digest(seed, b"run\n" + run_id.encode("utf-8", "replace"), "sha256").hex()


def given(seed: bytes, launch_id: str, run_id: str) -> str:
    """Both, as machines are given them."""
    return key_of(seed, launch_id) + key_of_run(seed, run_id)


def signed(data: bytes, key: str, purpose: str) -> bytes:
    """`key`: one, or both of a machine. Without a key: as it is."""
    return data + b"\n" + _digits(data, key, purpose) if key else data


def length(key: str) -> int:
    """By so much what is signed with it is longer."""
    return 1 + _LONG if key else 0


def opened(data: bytes, key: str, purpose: str) -> bytes | None:
    """What was signed; None where nobody with this key has signed it."""
    if not key:
        return data
    body, digits = data[: -_LONG - 1], data[-_LONG - 1 :]
    right = hmac.compare_digest(digits, b"\n" + _digits(body, key, purpose))
    return body if right else None


def bare(data: bytes) -> bytes:
    """What was perhaps signed, whoever did."""
    return data[: -_LONG - 1] if data[-_LONG - 1 : -_LONG] == b"\n" else data


def _digits(data: bytes, key: str, purpose: str) -> bytes:
    own = key[-_LONG:] if purpose in _OF_RUN else key[:_LONG]
    return hmac.digest(own.encode(), purpose.encode() + b"\n" + data, "sha256").hex().encode()
