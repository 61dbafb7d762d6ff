"""A small network, trained by JAX on all devices of all workers, which can be taken at any time.

Nothing of this is particular to Tradewind but `Run`: where the workers meet, which checkpoint to
begin with, when to save, and how far it is. It works alone as well: `python train.py`.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import signal
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tradewind import store as stores

WIDTH, HIDDEN, BATCH = 32, 256, 512


class Run:
    """What the supervisor says in the environment (docs/jobs.md), and how it is answered."""

    def __init__(self) -> None:
        env = os.environ
        self.rank, self.nodes = (
            int(env.get("TRADEWIND_RANK", 0)),
            int(env.get("TRADEWIND_NODES", 1)),
        )
        if self.nodes > 1:
            where = f"{env['MASTER_ADDR']}:{env['MASTER_PORT']}"
            jax.distributed.initialize(where, self.nodes, self.rank)
        signal.signal(signal.SIGTERM, lambda *_: None)  # the file below says the same
        self._store = stores.open(env.get("TRADEWIND_STORE", "checkpoints"))
        self._folder = f"runs/{env.get('TRADEWIND_RUN', 'alone')}"
        self._leg = int(env.get("TRADEWIND_LEG", 1))
        self._resume = env.get("TRADEWIND_RESUME")
        self._files = {
            name: Path(env[f"TRADEWIND_{name}"]) if f"TRADEWIND_{name}" in env else None
            for name in ("SAVE", "CADENCE", "PROGRESS")
        }
        self._saved, self._last = 0, time.monotonic()

    def begun(self) -> tuple[int, dict[str, np.ndarray] | None]:
        """The step to go on with, and the state then; None: from scratch."""
        if self._resume is None:  # alone
            kept = sorted(self._store.list_after(f"{self._folder}/checkpoints/"))
            self._resume = kept[-1] if kept else ""
        if not self._resume:
            return 0, None
        told = json.loads(self._store.get(self._resume))
        data = self._store.get(told["file"])
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            self._saved = told["step"]
            return told["step"], dict(file)

    def decided(self) -> tuple[bool, bool]:
        """Whether to save, and whether to stop then: the same on all workers, since what one of
        them is told the others do not know yet."""
        stop = self._is_there("SAVE")
        cadence = self._read("CADENCE").get("every_s", 60.0)
        due = self.rank == 0 and time.monotonic() - self._last >= cadence
        told = multihost_utils.process_allgather(np.array([stop, due]))
        stop, due = (bool(each) for each in np.asarray(told).reshape(-1, 2).any(axis=0))
        return stop or due, stop

    def save(self, step: int, state: dict[str, jax.Array]) -> None:
        """By the first worker. What makes it count is written last."""
        if self.rank == 0:
            data = io.BytesIO()
            np.savez(data, **{name: np.asarray(value) for name, value in state.items()})
            file = f"{self._folder}/shards/{self._leg:06d}/{step:020d}.npz"
            self._store.replace(file, data.getvalue())
            told = json.dumps({"step": step, "file": file}).encode()
            key = f"{self._folder}/checkpoints/{self._leg:06d}/{step:020d}.json"
            self._store.replace(key, told)
        multihost_utils.sync_global_devices(f"saved {step}")
        self._saved, self._last = step, time.monotonic()

    def tell(self, step: int) -> None:
        file = self._files["PROGRESS"]
        if file is not None:
            fresh = file.with_suffix(".new")
            fresh.write_text(json.dumps({"step": step, "saved": self._saved, "rate": None}))
            fresh.replace(file)

    def _is_there(self, name: str) -> bool:
        file = self._files[name]
        return file is not None and file.exists()

    def _read(self, name: str) -> dict[str, float]:
        file = self._files[name]
        return json.loads(file.read_text()) if file is not None and file.exists() else {}


def fresh() -> dict[str, jax.Array]:
    """The network, and Adam's moments of each of its parts."""
    one, two = jax.random.split(jax.random.key(1))
    weights = {
        "w1": jax.random.normal(one, (WIDTH, HIDDEN)) / WIDTH**0.5,
        "b1": jnp.zeros(HIDDEN),
        "w2": jax.random.normal(two, (HIDDEN, 1)) / HIDDEN**0.5,
    }
    zeros = {f"{m} {name}": jnp.zeros_like(w) for name, w in weights.items() for m in ("m", "v")}
    return weights | zeros


def made_update(mesh: Mesh):  # type: ignore[no-untyped-def]
    whole = NamedSharding(mesh, PartitionSpec())
    parts = NamedSharding(mesh, PartitionSpec("data"))

    def loss_of(weights: dict[str, jax.Array], x: jax.Array, y: jax.Array) -> jax.Array:
        hidden = jnp.tanh(x @ weights["w1"] + weights["b1"])
        return jnp.mean((hidden @ weights["w2"] - y) ** 2)

    def update(
        state: dict[str, jax.Array], step: jax.Array
    ) -> tuple[dict[str, jax.Array], jax.Array]:
        # What is learned from follows from the step, so that nothing else has to be kept.
        x = jax.random.normal(jax.random.fold_in(jax.random.key(2), step), (BATCH, WIDTH))
        x = jax.lax.with_sharding_constraint(x, parts)
        y = jnp.sin(x[:, :1] * 2) + x[:, 1:2] * x[:, 2:3]
        weights = {name: state[name] for name in ("w1", "b1", "w2")}
        loss, slopes = jax.value_and_grad(loss_of)(weights, x, y)
        done = {}
        for name, slope in slopes.items():
            m = 0.9 * state[f"m {name}"] + 0.1 * slope
            v = 0.999 * state[f"v {name}"] + 0.001 * slope**2
            unbiased = m / (1 - 0.9 ** (step + 1)), v / (1 - 0.999 ** (step + 1))
            done[name] = state[name] - 1e-3 * unbiased[0] / (jnp.sqrt(unbiased[1]) + 1e-8)
            done |= {f"m {name}": m, f"v {name}": v}
        return done, loss

    return jax.jit(update, out_shardings=(whole, whole), donate_argnums=0), whole


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=2000)
    steps = options.parse_args().steps
    run = Run()
    update, whole = made_update(Mesh(np.array(jax.devices()), ("data",)))
    print(f"worker {run.rank} of {run.nodes}, {len(jax.devices())} devices in all")
    first, kept = run.begun()
    found = kept or {name: np.asarray(value) for name, value in fresh().items()}
    state = {
        name: jax.make_array_from_callback(value.shape, whole, lambda at, value=value: value[at])
        for name, value in found.items()
    }
    for step in range(first, steps):
        state, loss = update(state, step)
        saves, stops = run.decided()
        if saves or step + 1 == steps:
            run.save(step + 1, state)
        run.tell(step + 1)
        if (step + 1) % 100 == 0 and run.rank == 0:
            print(f"step {step + 1} loss {float(loss):.4f}", flush=True)
        if stops:
            return
    if run.rank == 0:
        parts = b"".join(np.asarray(state[name]).tobytes() for name in sorted(state))
        print(f"weights {hashlib.sha256(parts).hexdigest()[:16]}")


if __name__ == "__main__":
    main()
