"""The bench commands answer in their documented shape. What the figures are decides no test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tradewind.bench import journal, plan, recovery, recovery_kills
from tradewind.cli.bench import loader as benchloader

pytestmark = pytest.mark.slow


def test_startup(cli: Cli) -> None:
    found = cli("bench", "startup", "--repeat", "1", "--json", "--peer", "true").json
    assert set(found) == {
        "python_s", "help_ratio", "offers_ratio", "help_s", "offers_s", "peers_s", "repeats",
    }  # fmt: skip
    assert all(found[name] > 0 for name in ("python_s", "help_ratio", "offers_ratio"))
    assert list(found["peers_s"]) == ["true"]
    text = cli("bench", "startup", "--repeat", "1").out
    assert text.count(" ms") == 3


def test_catalog(cli: Cli) -> None:
    found = cli("bench", "catalog", "--repeat", "1", "--json").json
    assert found["offers"] > 8_879
    assert all(found[name] > 0 for name in ("load_ms", "first_filter_ms", "filter_ms"))
    assert "offers" in cli("bench", "catalog", "--repeat", "1").out


def test_journal(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "EVENTS", 1000)
    found = cli("bench", "journal", "--repeat", "1", "--json").json
    assert list(found) == [
        "events", "open_s_100_a_commit", "open_s_10_a_commit", "open_s_1_a_commit",
        "open_and_fold_s", "newest_ms", "open_s_1_a_commit_unbound", "append_ms_median", "limit_s",
        "repeats",
    ]  # fmt: skip
    assert all(value > 0 for value in found.values())
    assert (found["events"], found["repeats"]) == (1000, 1)
    text = cli("bench", "journal", "--repeat", "1").out
    assert [line.split()[0] for line in text.splitlines()] == list(found)


def test_plan(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """A median of one is none: so few repeats are not taken."""
    assert plan._LEAST == 7
    monkeypatch.setattr(plan, "_LEAST", 2)
    found = cli("bench", "plan", "--repeat", "1", "--asks", "2", "--json").json
    assert set(found) == {
        "candidates", "layouts", "warm_ms_median", "cold_ratio", "cold_s", "per_second", "repeats",
        "asks", "with_a_plan", "without_ours", "beaten", "regret_median", "regret_p95",
        "regret_worst",
    }  # fmt: skip
    assert found["asks"] == 2
    assert 0 <= found["regret_median"] <= found["regret_worst"]
    assert found["candidates"] > 1_000
    assert found["cold_ratio"] > 1
    assert found["repeats"] == 2


def test_controller(cli: Cli) -> None:
    found = cli("bench", "controller", "--runs", "50", "--json").json
    assert list(found) == [
        "runs", "pass_s", "requests_per_run", "peak_mb", "look_requests", "cold_pass_s",
        "cold_requests_per_run", "workers", "latency_ms",
    ]  # fmt: skip
    assert found["runs"] == 50
    assert found["requests_per_run"] == 2
    assert found["look_requests"] == 2
    assert found["cold_requests_per_run"] > 2
    assert found["latency_ms"] == 20
    assert found["pass_s"] > 2 * 0.020
    assert found["peak_mb"] > 1
    text = cli("bench", "controller", "--runs", "1").out
    assert "1 idle run," in text
    assert text.count("within") + text.count("OVER") == 3
    assert cli("bench", "controller", "--runs", "0").code == 2


@pytest.mark.system  # 30 s of real processes
def test_recovery(cli: Cli) -> None:
    found = cli("bench", "recovery", "--repeat", "1", "--json").json
    assert list(found) == [
        "torchrun_s", "job_killed_s", "job_ratio", "machine_killed_s", "machine_excess_s",
        "machine_over_torchrun_s", "within", "repeats", "all",
    ]  # fmt: skip
    assert all(found[f"{name}_s"] > 0 for name in ("torchrun", "job_killed", "machine_killed"))
    assert found["repeats"] == 1
    assert all(len(values) == 1 for values in found["all"].values())


def test_recovery_needs_torch(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    ran = cli("bench", "recovery")
    assert ran.code == 7
    assert "tradewind[torch]" in ran.err


def test_recovery_in_words(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    found = recovery.figures([3.0, 9.0, 4.0], [4.0, 5.0, 9.0], [6.0, 9.0, 8.0])
    assert (found["job_ratio"], found["machine_excess_s"], found["within"]) == (1.25, 3.0, True)
    assert not recovery.figures([4.0], [5.3], [5.4])["within"]
    assert not recovery.figures([4.0], [4.0], [7.1])["within"]
    monkeypatch.setattr(recovery, "measure", lambda repeats, progress: found)
    text = cli("bench", "recovery", "--repeat", "3").out
    assert "3 times each" in text
    assert "5.00 s    1.25×  within 1.3×" in text
    found["machine_excess_s"] = 3.1
    assert "OVER 3 s more" in cli("bench", "recovery").out


def test_recovery_counts_steps_that_are_new(tmp_path: Path) -> None:
    """Those that are made again since the last checkpoint do not count."""
    job = recovery_kills.Job(tmp_path / "job", lambda: "it is over")
    told = job.data / "steps"
    told.write_text("7 1 100.0\n7 2 101.0\n8 2 103.0\n8 3 104.5\n8 4 105.0\n8 5 1")
    assert job.recovered_s(101.5) == 3.0
    with told.open("a") as stream:
        stream.write("06.0\n")
    assert job.steps()[-1] == (8, 5, 106.0)
    with pytest.raises(Exception, match="it is over"):
        job.recovered_s(106.5)


def test_steps_need_a_gpu(cli: Cli) -> None:
    ran = cli("bench", "gpu-steps", "--on", "H200")
    assert ran.code in (0, 3, 7)
    if ran.code:
        assert "GPU" in ran.err or "torch" in ran.err


def test_checkpoint_without_anything_but_torch(tmp_path: Path) -> None:
    """As on a machine of which nothing but the checkout is ours."""
    code = "import runpy, sys\n"
    code += (
        "for name in ('msgspec', 'click', 'rich', 'yaml', 'obstore'): sys.modules[name] = None\n"
    )
    code += "runpy.run_module('tradewind.bench.checkpoint', run_name='__main__', alter_sys=True)"
    options = ["--bytes", "12e6", "--device", "cpu", "--dir", str(tmp_path)]
    options += ["--ways", "ours,torch,dcp-pinned"]
    done = subprocess.run([sys.executable, "-c", code, *options], capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    assert list(found["ways"]) == ["ours", "torch", "dcp-pinned"]
    assert found["disk"]["write"] > 0
    for way in found["ways"].values():
        assert way["wrong_tensors"] == 0, way
        assert way["restore_s"] > 0
    assert found["ways"]["ours"]["write_share"] > 0
    assert list(tmp_path.iterdir()) == []


def test_checkpoint_in_words(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tradewind.bench.checkpoint import measure

    names = "step_s prepare_s first_stall_s worst_step_s durable_s restore_s".split()
    ours = dict.fromkeys(names, 0.4) | {"steady_stall_s": 0.09, "wrong_tensors": 0}
    ours |= {"write_share": 0.9, "restore_share": 0.7}
    found = {
        "device": "NVIDIA H200", "bytes": 18_400_000_000, "tensors": 3, "step_s": 0.4,
        "disk": {"write": 2e9, "read": 3e9},
        "ways": {"ours": ours, "dcp": {"failed": "RuntimeError: no"}, "torch": {"left_out": "no"}},
    }  # fmt: skip
    asked: list[Any] = []

    def answer(*given: Any) -> dict[str, Any]:
        asked.append(given)
        return found

    monkeypatch.setattr(measure, "best_device", lambda: "cuda")
    monkeypatch.setattr(measure, "measure", answer)
    text = cli("bench", "checkpoint", "--params", "1.5B", "--dir", str(tmp_path)).out
    assert asked[0][0] == 18e9
    assert "18.40 GB in 3 tensors on NVIDIA H200, a step takes 400 ms" in text
    assert "RuntimeError: no" in text
    assert "torch.save                      no" in text
    assert "0.090 s  OVER 0.05 s" in text
    assert "0.700×   UNDER 0.83×" in text
    assert cli("bench", "checkpoint", "--json").json == found
    assert cli("bench", "checkpoint", "--params", "1B", "--bytes", "1GB").code == 2


def test_checkpoint_says_what_it_cannot(cli: Cli, tmp_path: Path) -> None:
    wrong = cli("bench", "checkpoint", "--device", "cpu", "--ways", "mine", "--dir", str(tmp_path))
    assert wrong.code == 2
    assert "no way 'mine'" in wrong.err


def test_chaos_wants_a_store_of_its_own(cli: Cli, tmp_path: Path) -> None:
    """What it measures is in tests/system/test_chaos.py: it takes minutes."""
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "mine").write_text("precious")
    ran = cli("bench", "chaos", "--store", str(tmp_path / "store"), "--kills", "1")
    assert ran.code == 2
    assert "is not empty" in ran.err
    assert cli("bench", "chaos", "--kills", "0").code == 2


def test_bad_input(cli: Cli) -> None:
    assert cli("bench", "startup", "--repeat", "0").code == 2
    assert cli("bench", "startup", "--repeat", "1", "--peer", "no-such-program").code == 3
    assert cli("bench", "everything").code == 2


def test_training_with_and_without_a_session(cli: Cli, tmp_path: Path) -> None:
    options = ("--device", "cpu", "--steps", "10", "--turns", "1", "--save-every", "8")
    ran = cli("bench", "training", *options, "--dir", str(tmp_path), "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["saves"] == 2  # ten steps to warm up, and ten that were timed
    assert found["told"] == 20
    assert found["plain_tokens_s"] > 0 < found["session_tokens_s"]
    assert found["overhead"] > -1
    assert found["end_s"] > 0  # the last state is saved
    assert "estimated_tokens_s" not in found
    assert list(tmp_path.iterdir()) == []


@pytest.mark.system  # a minute of real workers
def test_loader(cli: Cli) -> None:
    found = cli("bench", "loader", "--seconds", "0.05", "--json").json
    assert list(found) == ["cores", "seconds", "repeats", "datasets"]
    assert list(found["datasets"]) == ["images", "tiny samples", "tokens", "slow store"]
    for about in found["datasets"].values():
        assert list(about) == [
            "batch", "step_ms", "samples_per_s", "ours", "ours_against_best",
            "ours_against_0_workers",
        ]  # fmt: skip
        assert len(about["samples_per_s"]) >= 3
        assert all(speed > 0 for speed in about["samples_per_s"].values())
        assert set(about["ours"]) == {"num_workers", "prefetch_factor", "chosen_in_s"}


@pytest.mark.long
def test_training_in_turns(cli: Cli, tmp_path: Path) -> None:
    """Three processes at once, twice: each held against itself, and how sure the difference is."""
    options = ("--device", "cpu", "--in-turns", "--steps", "10", "--turns", "3")
    found = cli(
        "bench", "training", *options, "--processes", "2", "--dir", str(tmp_path), "--json"
    ).json

    def grown(kind: str) -> float:
        pairs = zip(found[f"{kind}_before_ms"], found[f"{kind}_ms"], strict=True)
        return sum(float(after) / float(before) for before, after in pairs)

    for kind in ("silent", "session"):
        assert len(found[f"{kind}_ms"]) == 2
        assert found[f"{kind}_overhead"] == pytest.approx(
            grown(kind) / grown("plain") - 1, abs=1e-3
        )
        assert found[f"{kind}_margin"] > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_training_by_parts(cli: Cli, tmp_path: Path) -> None:
    """What a session does in a step is timed where it does it."""
    options = ("--device", "cpu", "--parts", "--steps", "20", "--processes", "2")
    found = cli("bench", "training", *options, "--dir", str(tmp_path), "--json").json
    plain, ours = found["us"]["plain"], found["us"]["session"]
    more = sum(ours[name] - plain[name] for name in ("batch", "hooks", "session", "beside"))
    assert found["session_overhead"] == pytest.approx(more / plain["step"], abs=1e-3)
    assert ours["session"] > plain["session"]
    assert list(tmp_path.iterdir()) == []


def test_loader_of_ones_own(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "owndata.py").write_text(
        "def train(): return list(range(100))\n"
        "held = list(range(50))\n"
        "empty = []\n"
        "number = 3\n"
        "def broken(): raise KeyError('missing')\n"
        "class Bad:\n"
        "    def __len__(self): return 3\n"
        "    def __getitem__(self, index): return {}[index]\n"
    )
    options = ("--seconds", "0.05", "--step-ms", "1", "--batch", "10")
    text = cli("bench", "loader", "owndata:train", *options).out
    assert "owndata:train: batches of 10, steps of 1 ms" in text
    assert "the best of the others" in text
    assert len(benchloader._theirs("owndata:held")) == 50
    for name, words in {
        "owndata:none": "owndata has no 'none'",
        "owndata:number": "is a int, and no dataset",
        "owndata:empty": "has no samples",
        "owndata:broken": "KeyError: 'missing'",
        "owndata:Bad": "sample 0 of owndata:Bad: KeyError",
        "nosuchmodule:x": "no module 'nosuchmodule'",
    }.items():
        ran = cli("bench", "loader", name)
        assert ran.code in (2, 3)
        assert words in ran.err
