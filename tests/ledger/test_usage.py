from __future__ import annotations

from msgspec.structs import replace

from tradewind.model.usage import GB, MONTH_S, Rates, Usage, cost, lines

RATES = Rates(writes=5_000_000, reads=400_000, gb_in=10_000, gb_out=20_000, gb_month=23_000)


def test_each_part_by_itself() -> None:
    assert cost(Usage(), RATES) == 0
    assert cost(Usage(writes=1000), RATES) == 5_000
    assert cost(Usage(reads=1000), RATES) == 400
    assert cost(Usage(bytes_in=3 * GB), RATES) == 30_000
    assert cost(Usage(bytes_out=100 * GB), RATES) == 2_000_000
    assert cost(Usage(byte_s=GB * MONTH_S), RATES) == 23_000
    assert cost(Usage(writes=10**9, byte_s=10**30), Rates()) == 0


def test_each_line_is_rounded_up_once() -> None:
    """0.4 micro-dollars for a read."""
    assert cost(Usage(reads=1), RATES) == 1
    assert cost(Usage(reads=2), RATES) == 1
    assert cost(Usage(reads=5), RATES) == 2
    assert cost(Usage(reads=3, bytes_out=1, byte_s=1), RATES) == 4
    assert [line.micros for line in lines(Usage(writes=7, reads=3), RATES)] == [35, 2]


def test_older_versions_are_kept_and_paid() -> None:
    day = replace(RATES, kept_s=MONTH_S // 30)
    assert cost(Usage(gone=30 * GB), RATES) == 0
    assert cost(Usage(gone=30 * GB), day) == 23_000
    assert cost(Usage(gone=15 * GB, byte_s=GB * MONTH_S // 2), day) == 23_000


def test_added_up() -> None:
    one = Usage(writes=1, reads=2, bytes_in=3, bytes_out=4, byte_s=5, gone=6)
    assert one + one == Usage(writes=2, reads=4, bytes_in=6, bytes_out=8, byte_s=10, gone=12)
