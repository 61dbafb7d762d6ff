"""The HTML page of pictures in a real browser."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--enable-logging=stderr"
).split()


def browse(page: Path, profile: Path, *more: str) -> subprocess.CompletedProcess[str]:
    chromium = shutil.which("chromium")
    assert chromium, "chromium is not installed; run `make test-system`"
    return subprocess.run(
        [chromium, *FLAGS, f"--user-data-dir={profile}", *more, page.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "prices.html"
    subprocess.run(
        [sys.executable, "-m", "tradewind", "offers", "a100", "--all", "--plot", str(path)],
        check=True,
        capture_output=True,
    )
    return path


def test_it_opens_offline_without_complaint(page: Path, tmp_path: Path) -> None:
    done = browse(page, tmp_path, "--dump-dom")
    assert done.stdout.count("<svg") >= 3  # matrix, regions, timeline
    assert "A100-80GB" in done.stdout
    assert "CONSOLE" not in done.stderr


def test_it_looks_like_something(page: Path, tmp_path: Path) -> None:
    from matplotlib.image import imread

    picture = tmp_path / "page.png"
    browse(page, tmp_path, f"--screenshot={picture}", "--window-size=1200,1600")
    pixels = imread(picture)
    assert pixels.shape[:2] == (1600, 1200)
    # Not blank, and not one colour: text, lines and filled cells.
    colours = {tuple(p) for p in (pixels[::8, ::8, :3].reshape(-1, 3) * 15).round().tolist()}
    assert len(colours) > 10
