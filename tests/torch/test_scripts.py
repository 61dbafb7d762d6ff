"""Other people's scripts: killed and resumed, each comes to the same bits, or says why it does not.

The scripts are in tests/torch/scripts. What `tradewind verify` does is done to each: run
undisturbed, saved, killed, resumed, asked to end, resumed; and compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.cases import and_long
from tests.torch.lives import Nursery, Training
from tradewind.torch.verify import compare, lives

pytestmark = pytest.mark.slow
STEPS = 16
EXACT = [
    "epochs_kept",
    "wrapped ahead",
    "accumulate enumerate",
    "completed_steps kept",
    "prefetched class",
    "sharpness both",
    "generators 2",
    "two_loaders stream",
    "teacher extra",
    "gpt_memmap number",
    "curriculum kept",
    "curriculum growing",
    "wrappers",
    "unfrozen",
    "evaluated epoch",
    "adversaries three",
    "environments extra",
]
EXACT_TOO = [
    "accumulate session",
    "accumulate number",
    "accumulate one",
    "scaled early",
    "wrapped class",
    "prefetched inline",
    "generators 0",
    "split seeded",
    "teacher given",
    "mixed stream",
    "once seeded",
    "adversarial",
    "gpt_memmap steps",
    "replay kept",
    "accelerated number",
    "averages given",
    "averages inside",
    "averages variables",
    "evaluated steps",
    "evaluated plain",
    "adversaries optimizer",
    "adversaries module",
    "adversaries accumulated",
]
REFUSED = {
    "scaled late": "the session does not hold a OneCycleLR",
    "wrapped threads": "gives other batches than before",
    "prefetched late": "something is stepped after session.step()",
    "sharpness alone": "AdamW (SAM.base_optimizer) makes steps",
    "two_loaders iter": "a DataLoader that the session does not hold",
    "two_loaders forgotten": "a DataLoader that the session does not hold",
    "teacher lost": "a Sequential changes in training, and the session does not hold it",
    "teacher frozen": "parameters that need no gradient change in training",
    "mixed thread": "session.batches() is read by another thread",
    "mixed loader": "a DataLoader that the session does not hold",
    "out_of_order double": "was torch.float32 when the session was made and is torch.float64",
    "out_of_order loaded": "weights change between tw.session(…) and its loop",
    "out_of_order warm": "between tw.session(…) and its loop",
    "averages attribute": "Shadows.shadow_params has tensors like the model's parameters",
    "averages nested": "Shadows.shadow_params has tensors like the model's parameters",
    "averages copy": "a Sequential changes in training",
}
WARNED = {
    "accumulate last": "i would be 8 and is 0",
    "completed_steps lost": "completed_steps was 5 and is 0",
    "split random": "the samples, or their order",
    "teacher shadow": "average.shadow",
    "out_of_order attributes": "buffers that are not persistent change in training",
    "gpt_memmap own": "iter_num would be",
    "replay lost": "len(buffer) was 15 and is 0",
    "curriculum lost": "level was",
    "mining lost": "sampler.weights is another",
    "accelerated own": "completed_steps was 5 and is 0",
    "accelerated seeded": "completed_steps was 5 and is 0",
    "best_so_far best": "and is inf",
    "best_so_far environment": "environment.inner.np_random is another",
    "mixed cycle": "the cycle zipped with the batches is at its beginning",
    "once drawn": "mix was",
    "once initialized": "0.ready was 1 and is 0",
    "once made": "model.0.center: made in training",
    "best_so_far ahead": "random numbers are drawn before the first step",
    "averages closure": "average (of in_closure.<locals>.update) has tensors like the model's",
    "averages copy-late": "a Sequential changes in training",
    "environments vector": "environments begin new episodes: envs (Vector);",
    "evaluated kept": "is read in one step after the other",
}
WARNED_TOO = {
    "averages attribute-late": "Shadows.shadow_params has tensors like the model's parameters",
    "averages table": "Tables.average has tensors",
    "averages local": "here has tensors",
    "averages vector": "long has tensors",
    "environments agent": "keeps.envs (Vector)",
    "environments list": "each_env[0] (Wrapper), each_env[1] (Wrapper) and more",
    "evaluated target": "a Sequential changes in training",
}


class Tried:
    """What `tradewind verify` would say of a script."""

    def __init__(self, nursery: Nursery, script: str, folder: Path) -> None:
        name, *self._arguments = script.split(maxsplit=1)
        self._module, self._nursery = f"tests.torch.scripts.{name}", nursery
        self._folder = folder
        self.whole = lives.whole(self._start, folder, STEPS, say=print)
        self.broken = []
        if self.whole.code == 0 and not self.whole.refused:
            self.broken = lives.broken(self._start, folder, self.whole.steps, say=print)
        self.all = [self.whole, *self.broken]

    def _start(self, env: Mapping[str, str], log: Path) -> int:
        pid = self._nursery.ask(
            log=str(log),
            folder=str(self._folder),
            module=self._module,
            arguments=self._arguments,
            env={"OMP_NUM_THREADS": "1", **env},
        )
        return self._nursery.ask(wait=pid)

    def differences(self) -> list[str]:
        found = compare.compare(self.whole.rows, compare.rows_of(self.broken))
        return [
            f"{each.what} {each.first} {each.words}" for each in found if each.first is not None
        ]

    def warnings(self) -> list[str]:
        return [words for life in self.all for words in life.warnings]

    def refusal(self) -> str:
        return next((life.refused for life in self.all if life.refused), "")

    def log(self) -> str:
        return "\n".join(f"-- {life.name} ({life.code})\n{life.said}" for life in self.all)


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    folder = Path(__file__).parent / "scripts"
    scripts = [f"tests.torch.scripts.{path.stem}" for path in folder.glob("[a-z]*.py")]
    made = Nursery(*scripts, "tradewind.torch.sessions.session")
    yield made
    made.close()


@pytest.mark.parametrize("script", and_long(EXACT, EXACT_TOO))
def test_exact(nursery: Nursery, script: str, tmp_path: Path) -> None:
    tried = Tried(nursery, script, tmp_path)
    assert [life.name for life in tried.all] == ["whole", "killed", "asked", "resumed"], tried.log()
    assert tried.all[-1].code == 0, tried.log()
    assert tried.whole.steps == STEPS
    assert not tried.differences(), [*tried.differences(), tried.log()]


@pytest.mark.parametrize("script", REFUSED)
def test_refused(nursery: Nursery, script: str, tmp_path: Path) -> None:
    tried = Tried(nursery, script, tmp_path)
    assert REFUSED[script] in tried.refusal(), tried.log()


@pytest.mark.parametrize("script", and_long([*WARNED], [*WARNED_TOO]))
def test_warned(nursery: Nursery, script: str, tmp_path: Path) -> None:
    """And never ended, whenever it is found."""
    tried = Tried(nursery, script, tmp_path)
    assert tried.differences(), tried.log()
    said = {**WARNED, **WARNED_TOO}[script]
    assert any(said in words for words in tried.warnings()), tried.log()
    assert tried.all[-1].code == 0, tried.log()


def test_a_save_that_waits_says_for_what(nursery: Nursery, tmp_path: Path) -> None:
    tried = Tried(nursery, "adversaries zeros", tmp_path)
    assert [life.name for life in tried.all] == ["whole", "killed"], tried.log()
    assert tried.all[-1].waited_for.startswith("model.0."), tried.log()


@pytest.mark.parametrize("how", ["epochs", "accumulate", "stream", "ahead"])
def test_other_numbers_of_ranks(nursery: Nursery, how: str, tmp_path: Path) -> None:
    """Two ranks, then three, then one: each sample is seen once an epoch all the same."""
    training = Training(nursery, tmp_path, "tests.torch.scripts.in_ranks")
    slowly = {"STEP_S": "0.05"}
    training.start(how, world=2, env=slowly).has_saved(6).kill()
    second = training.start(how, world=3, env=slowly)
    second.has_saved(max(second.saved()) + 4).kill()
    last = training.start(how).done()
    assert last.begun() > second.begun() > 0
    times = 4 if how == "ahead" else 1
    epochs = range(1) if how == "ahead" else range(4)
    seen = training.seen()
    assert [seen[epoch, index] for epoch in epochs for index in range(48)] == [times] * (
        48 * len(epochs)
    ), last.log()
    if how == "stream":  # and what was read of the second loader is not read again
        assert {seen[100, index] for index in range(48)} == {1}
    if how == "epochs":
        assert f"lr {0.1 * 0.7**4:.6f}" in last.log()


def test_a_loader_of_ones_own_in_other_numbers_of_ranks(nursery: Nursery, tmp_path: Path) -> None:
    """Its order belongs to each rank: the epoch begins again, and that is said."""
    training = Training(nursery, tmp_path, "tests.torch.scripts.in_ranks")
    training.start("wrapped", world=2, env={"STEP_S": "0.05"}).has_saved(6).kill()
    last = training.start("wrapped").done()
    assert "begins again" in last.log()


def test_a_script_that_is_exact_is_not_bothered(nursery: Nursery, tmp_path: Path) -> None:
    """Warnings are for what goes wrong."""
    for number, script in enumerate(("accumulate session", "gpt_memmap steps", "wrappers")):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert Tried(nursery, script, folder).warnings() == []


COMBINED = st.fixed_dictionaries(
    {
        "samples": st.sampled_from([20, 24, 30]),
        "workers": st.sampled_from([0, 0, 0, 1]),
        "drop_last": st.booleans(),
        "noise": st.sampled_from(["none", "torch", "own", "module"]),
        "mix": st.sampled_from(["none", "python", "module"]),
        "wrapped": st.booleans(),
        "scheduler": st.sampled_from(["given", "found"]),
        "stepped": st.sampled_from(["batch", "epoch"]),
        "teacher": st.sampled_from(["none", "given", "lost"]),
        "accumulate": st.sampled_from([1, 2, 3]),
        "counter": st.sampled_from(["index", "count", "step"]),
        "enumerate": st.sampled_from(["session", "python"]),
        "loop": st.sampled_from(["range", "epochs"]),
    }
)


@given(drawn=COMBINED)
@settings(
    max_examples=6,
    deadline=None,
    database=None,
    phases=[Phase.generate],  # a smaller one takes minutes to find
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_combination(
    nursery: Nursery, tmp_path_factory: pytest.TempPathFactory, drawn: dict[str, Any]
) -> None:
    """The same to the bit, or somebody is told."""
    script = f"combined {json.dumps(drawn, separators=(',', ':'))}"
    tried = Tried(nursery, script, tmp_path_factory.mktemp("combined"))
    if drawn["teacher"] == "lost":
        assert "the session does not hold it" in tried.refusal(), tried.log()
        return
    assert not tried.refusal(), tried.log()
    assert tried.broken[-1].name == "resumed", tried.log()
    if tried.differences():
        assert tried.warnings(), [*tried.differences(), tried.log()]
        assert drawn["counter"] != "step", tried.log()
        assert drawn["accumulate"] > 1, tried.log()
