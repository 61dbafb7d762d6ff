"""What the demo says when it cannot begin. The journey itself is tests/system/test_demo.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.lifecycle.builders import SPOT, WAY
from tradewind.demo import jobs


def _without_torch(*arguments: str) -> subprocess.CompletedProcess[str]:
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "from tradewind.cli import app\n"
        "sys.exit(app.run(sys.argv[1:]))"
    )
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=60
    )


def test_pytorch_is_missing(tmp_path: Path) -> None:
    done = _without_torch("demo", "--folder", str(tmp_path / "pages"))
    assert done.returncode == 7
    assert "PyTorch, which is not installed" in done.stderr
    assert "tradewind[torch]" in done.stderr
    assert not (tmp_path / "pages").exists()


def test_pages_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    done = subprocess.run(
        [sys.executable, "-m", "tradewind", "demo", "--folder", str(tmp_path / "taken" / "pages")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 5
    assert "cannot be written" in done.stderr


def test_what_was_trained_in_the_example_is_not_taken_along(tmp_path: Path) -> None:
    copy = jobs.copied("tiny-gpt", tmp_path / "job")
    assert {path.name for path in copy.iterdir()} == {
        "README.md",
        "text.txt",
        "train.py",
        "work.yaml",
    }


def test_the_world_is_priced_as_the_plan() -> None:
    from tradewind import catalog as catalogs
    from tradewind.api import submit
    from tradewind.demo import world
    from tradewind.demo.alone import Alone
    from tradewind.planning.planner import on_spot

    wanted = submit.wanted(jobs.example("pretrain-1.3b") / "work.yaml")
    alone = Alone(weights="0", start_s=5.0, work_s=30.0)
    plans = [wanted.plan, *wanted.others, *on_spot(wanted.workload, catalogs.load()).plans]
    made = world.made(plans, catalogs.load(), alone, 900)
    spot = [way for way in made.spec.ways if way.market == SPOT.market]
    safe = [way for way in made.spec.ways if way.market == WAY.market]
    assert len(spot) == 3
    assert len(safe) == 1
    prices = {round(p.price_hour["spot"] * world.SPEED) for p in plans if "spot" in p.price_hour}
    assert len({way.price for way in spot}) == 1
    assert {way.price for way in spot} <= prices
    assert safe[0].price > spot[0].price
    assert set(made.wish.traces) == {way.zone for way in spot}
    # In the end there is no spot machine anywhere, long before the deadline.
    assert made.spec.deadline_s is not None
    late_s = (made.spec.deadline_s - made.wish.began_s) * world.SPEED * 0.9
    assert all(trace.count(late_s) == 0 for trace in made.wish.traces.values())
    assert any(trace.count(0.0) == 1 for trace in made.wish.traces.values())
