"""For which Pythons wheels are fetched, beside this computer's own."""

from __future__ import annotations

import platform
import sys

import pytest

from tradewind.api import luggage

OURS = f"3.{sys.version_info.minor}"
PROCESSOR = platform.machine()
ARCHITECTURE = {"aarch64": "arm64"}.get(PROCESSOR, PROCESSOR)
EACH = luggage.PYTHONS


def test_all_that_a_machine_may_have() -> None:
    """first.sh takes these, and looks for no others."""
    assert list(EACH) == ["3.11", "3.12", "3.13", "3.14"]
    other = "arm64" if PROCESSOR == "x86_64" else "x86_64"
    there = {"arm64": "aarch64"}.get(other, other)
    assert luggage.targets(other, EACH) == [(each, there) for each in EACH]


@pytest.mark.skipif(sys.platform != "linux", reason="it is about Linux")
def test_only_a_computer_like_the_machines_has_wheels_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert platform.libc_ver()[0] == "glibc"
    assert (OURS, PROCESSOR) not in luggage.targets(ARCHITECTURE, EACH)
    monkeypatch.setattr(sys, "platform", "darwin")  # an Intel Mac, say
    assert (OURS, PROCESSOR) in luggage.targets(ARCHITECTURE, EACH)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))  # Alpine
    assert (OURS, PROCESSOR) in luggage.targets(ARCHITECTURE, EACH)
