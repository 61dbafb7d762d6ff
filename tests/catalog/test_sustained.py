from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tests.catalog.small import REAL, TODAY
from tradewind.base.errors import BadFile
from tradewind.catalog import account, sustained
from tradewind.catalog.account import Account
from tradewind.model.sustained import WHOLE, unpaid

HEAD = "provider,type,from,pays,as_of,source,evidence,note\n"


def own(text: str) -> Account:
    return account.read(text, "account.yaml", REAL.names, REAL.providers)


@pytest.mark.parametrize(("kind", "off"), [("n1-standard-8+1xT4", 0.3), ("n2-standard-8", 0.2)])
def test_a_whole_month_is_what_the_page_says(kind: str, off: float) -> None:
    month_s = 30 * 86_400
    found = unpaid(sustained.steps("gcp", kind), 0, month_s, month_s) / WHOLE / month_s
    assert found == pytest.approx(off, abs=0.001)
    assert sustained.steps("aws", kind) == ()


def test_an_account_has_it_where_it_says_so() -> None:
    read = own("discounts:\n  - {match: {provider: gcp}, sustained: true, until: 2026-12-31}\n")
    assert read.applied(REAL.table, TODAY).prices == REAL.table.prices  # an hour costs the same
    found = read.sustained(REAL.table, TODAY)
    types = {REAL.table.columns["instance_type"][row] for row in found}
    assert "n1-standard-8+1xT4" in types
    assert all(name.startswith(("n1-", "n2-")) for name in types)
    assert read.sustained(REAL.table, date(2027, 1, 1)) == {}
    assert own("").sustained(REAL.table, TODAY) == {}


def test_a_line_that_gives_nothing_is_named() -> None:
    read = own("discounts:\n  - {match: {provider: gcp, type: g2-*}, sustained: true}\n")
    (told,) = read.idle(REAL.table)
    assert told == "account.yaml line 2: no type that match fits has a sustained-use discount"


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ("gcp,n1-*,0.25,0.8,2026-01-01,page,seen,\n", "line 2: the first step .* begins at 0"),
        (
            "gcp,n1-*,0,1,2026-01-01,page,seen,\ngcp,n1-*,0,0.8,2026-01-01,page,seen,\n",
            "line 3: .* rising",
        ),
        ("gcp,n1-*,0,1.2,2026-01-01,page,seen,\n", "pays is a share"),
        ("gcp,n1-*,0,1,2026-01-01,,seen,\n", "a step has a source"),
        ("gcp,n1-*,0,1,soon,page,seen,\n", "line 2"),
    ],
)
def test_a_table_that_is_wrong(tmp_path: Path, lines: str, complaint: str) -> None:
    path = tmp_path / "sustained.csv"
    path.write_text(HEAD + lines)
    with pytest.raises(BadFile, match=complaint):
        sustained.read(path)
