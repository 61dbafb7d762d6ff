"""`tradewind verify`, on scripts as a user has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli

pytestmark = pytest.mark.slow
SCRIPT = """
import sys, torch, tradewind.torch as tw
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.1), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(40, 4)
data = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4, shuffle=True)
session = tw.session(model=model, optimizer=optimizer, data=data)
count = 0
for x, y in session.batches(epochs=5):
    if "count" in sys.argv:
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + count)
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    count += 1
    session.step(loss=loss)
"""


def test_a_script_that_resumes(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    done = cli("verify", str(tmp_path / "train.py"), "--steps", "9")
    assert done.code == 0, done.out
    assert "weights         the same in 9 steps" in done.out
    assert "data            the same in" in done.out
    assert "not tried: the end of an epoch, as none ended in" in done.out
    assert "train.py resumes bit-exact" in done.out


def test_a_script_that_does_not(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    done = cli("verify", str(tmp_path / "train.py"), "--steps", "9", "--json", "--", "count")
    assert done.code == 1
    told = done.json
    assert told["same"] is False
    differs = {row["what"]: row["differs_from"] for row in told["compared"]}
    assert differs["data"] is None
    assert differs["learning rates"] == differs["weights"] == 4
    assert any("learning rates are others" in words for words in told["causes"])
    assert any("count was 3 and is 0" in words for words in told["warnings"])


FOLDS = SCRIPT.replace("data=data)", "data=data, folder=folder)").split("model =", 1)
FOLDS_OF = (
    FOLDS[0] + "for folder in ('0', '1', '0'):\n    model =" + FOLDS[1].replace("\n", "\n    ")
)


def test_the_first_of_several_sessions(cli: Cli, tmp_path: Path) -> None:
    """Each fold in a folder of its own; none is taken for another."""
    (tmp_path / "train.py").write_text(FOLDS_OF + "session.finish()\n")
    done = cli("verify", str(tmp_path / "train.py"), "--steps", "60", "--json")
    assert done.code == 0, done.out + done.err
    assert done.json["steps"] == 50
    assert not any("has trained in" in words for words in done.json["warnings"])


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("print('hello')", "made 0 steps of a session"),
        ("import nothing_of_that_name", "failed by itself"),
        ("import time; time.sleep(60)", "has not made its steps in 2 seconds"),
    ],
)
def test_scripts_that_cannot_be_tried(cli: Cli, tmp_path: Path, script: str, words: str) -> None:
    path = tmp_path / "train.py"
    path.write_text(script)
    done = cli("verify", str(path), *(("--timeout", "2") if "sleep" in script else ()))
    assert done.code == 2
    assert words in done.err
    assert "hint:" in done.err


def test_no_script(cli: Cli, tmp_path: Path) -> None:
    done = cli("verify", str(tmp_path / "train.py"))
    assert done.code == 3
    assert "there is no script" in done.err


@pytest.mark.long
def test_the_example_without_a_loader(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script = Path(__file__).parents[2] / "examples" / "gpt-memmap" / "train.py"
    done = cli("verify", str(script), "--steps", "8")
    assert done.code == 0, done.out + done.err
    assert "weights         the same in 8 steps" in done.out
