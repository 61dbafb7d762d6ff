"""Lambda's error codes, in one table, and what each means to us.

Of the API's OpenAPI document (1.10). Its answers to a refused request are 4xx with
`{"error": {"code", "message", "suggestion"}}`. What too many requests are called is not documented;
they are known by their status.
"""

from __future__ import annotations

from msgspec import Struct, json

from tradewind.base.decoding import UNREADABLE
from tradewind.providers.rest import Row, Said, Table

KEY_HINT = (
    "make one at cloud.lambda.ai/api-keys, then `export LAMBDA_API_KEY=…`, or write"
    " `api_key = …` into ~/.lambda_cloud/lambda_keys; tradewind doctor lambda tries it"
)
_ACCOUNT = "cloud.lambda.ai: confirm the address, and add a way to pay"


class _Error(Struct):
    code: str = ""
    message: str = ""
    suggestion: str | None = None


class _Body(Struct):
    error: _Error


def _reads(body: bytes) -> Said:
    try:
        error = json.decode(body, type=_Body).error
    except UNREADABLE:
        return Said("", "")
    return Said(error.code, " ".join(each for each in (error.message, error.suggestion) if each))


TABLE = Table(
    codes={
        "instance-operations/launch/insufficient-capacity": Row("no_capacity"),
        "instance-operations/launch/file-system-in-wrong-region": Row("not_allowed"),
        "global/quota-exceeded": Row(
            "no_quota", "Lambda raises it as invoices are paid, or when its support is asked"
        ),
        "global/invalid-parameters": Row("not_allowed"),
        "global/duplicate": Row("not_allowed"),
        "global/object-does-not-exist": Row("not_found"),
        "global/invalid-api-key": Row("no_access", KEY_HINT),
        "global/account-inactive": Row("no_access", _ACCOUNT),
        "global/invalid-address": Row("no_access", _ACCOUNT),
        "global/internal-error": Row("unknown"),
    },
    reads=_reads,
    key_hint=KEY_HINT,
)
