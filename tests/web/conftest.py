"""A real browser, and where its pictures go."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.browser import browser

__all__ = ["browser"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chosen = os.environ.get("TRADEWIND_SHOTS")
    if not chosen:
        return tmp_path_factory.mktemp("pages")
    Path(chosen).mkdir(parents=True, exist_ok=True)
    return Path(chosen)
