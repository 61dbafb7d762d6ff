"""While an account is being set up, nobody is told to set it up."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from tradewind.base.errors import TradewindError
from tradewind.providers.aws.setup import calls


def test_setup_does_not_advise_to_run_setup() -> None:
    refusal = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "CreateRole")
    with pytest.raises(TradewindError) as told, calls._explained("making a role"):
        raise refusal
    assert told.value.hint == "run it again; what was made so far is found"
