"""Two stores in one home: neither takes the other's machines for its own."""

from __future__ import annotations

from pathlib import Path

from tests.lifecycle.builders import a_request
from tests.providers.local_machines import a_home, command
from tradewind.providers.local.provider import LocalProvider


def test_a_store_lists_its_own_machines(tmp_path: Path) -> None:
    """A controller of the other would find no journal that claims them, and end them."""
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with a_home(tmp_path / "home") as home:

        def of(name: str) -> LocalProvider:
            url = (tmp_path / name).as_uri()
            return LocalProvider(home, url, command=command(), own_only=True)

        [machine] = of("a").launch(a_request(), 1)
        assert [m.machine_id for m in of("a").list_machines().machines] == [machine.machine_id]
        assert [m.machine_id for m in of("link").list_machines().machines] == [machine.machine_id]
        assert of("b").list_machines().machines == ()
        every = LocalProvider(home, "memory://", command=command())
        assert len(every.list_machines().machines) == 1
