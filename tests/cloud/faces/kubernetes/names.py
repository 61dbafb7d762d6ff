"""Forms of names and labels: each function tells what is wrong, "" for nothing."""

from __future__ import annotations

import re

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_VALUE = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"


def dns_label(text: str) -> str:
    if len(text) > 63:
        return "must be no more than 63 characters"
    if not re.fullmatch(_LABEL, text):
        return (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
            "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
            f"regex used for validation is '{_LABEL}')"
        )
    return ""


def dns_subdomain(text: str) -> str:
    if len(text) > 253:
        return "must be no more than 253 characters"
    if not re.fullmatch(_SUBDOMAIN, text):
        return (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
            "'-' or '.', and must start and end with an alphanumeric character (e.g. "
            f"'example.com', regex used for validation is '{_SUBDOMAIN}')"
        )
    return ""


def label_value(text: object) -> str:
    if not isinstance(text, str):
        return "must be a string"
    if len(text) > 63:
        return "must be no more than 63 characters"
    if not re.fullmatch(_VALUE, text):
        return (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "
            "or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
            f"'my_value',  or '12345', regex used for validation is '{_VALUE}')"
        )
    return ""


def label_key(text: str) -> str:
    prefix, slash, name = text.rpartition("/")
    if slash and (not prefix or dns_subdomain(prefix)):
        return f"prefix part {dns_subdomain(prefix) or 'must be non-empty'}"
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:
        return "name part must be no more than 63 characters"
    if not re.fullmatch(_NAME, name):
        return (
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start "
            "and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
            f"regex used for validation is '{_NAME}')"
        )
    return ""
