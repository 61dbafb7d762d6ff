"""Https on loopback."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme


def trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """For a server on 127.0.0.1: with a certificate that this process trusts from now on."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "authority.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context
