from __future__ import annotations

from pathlib import Path

from tradewind.base import clock
from tradewind.supervisor import notice


def test_what_is_left_is_read_in_either_form(tmp_path: Path) -> None:
    """Local machines write the moment; whoever writes by hand may write the seconds."""
    path = tmp_path / "notice"
    look = notice.source(str(path))
    assert look() is None
    path.write_text("30")
    assert look() == 30.0
    path.write_text(f'{{"taken_at_s": {clock.now().timestamp() + 100}}}')
    left_s = look()
    assert left_s is not None
    assert 0 < left_s <= 100
    path.write_text('{"taken_at_s": 1.0}')
    left_s = look()
    assert left_s is not None
    assert 0 < left_s < 1, "it is past, which is not the same as unknown"
    for nonsense in ("", "soon", "{}", "nan", "-1"):
        path.write_text(nonsense)
        assert look() == 0.0
