"""The machine's pass to an S3 store, for SDKs of the job's own: boto3 and others ask this address
as they would ask a container's agent, and ask again before what they were given ends.

It answers on loopback alone, and only to who can read the token beside the pass: processes of the
machine's own user. That is who can read the pass itself, and no more.
"""

from __future__ import annotations

import hmac
import threading
from collections.abc import Mapping
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from msgspec import json

from tradewind.base import clock
from tradewind.base.errors import TradewindError
from tradewind.base.ownfiles import replace
from tradewind.store.lending import held

URI, TOKEN_FILE = "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"


def serve(pass_file: Path) -> Mapping[str, str]:
    """Until this process ends. The variables by which SDKs find it; none where the pass is not one
    that they could use."""
    if not held.read(pass_file).store_url.startswith("s3://"):
        return {}
    token, path = clock.secret(32).hex(), pass_file.with_name("pass.token")
    replace(path, token.encode())

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            given = self.headers.get("Authorization", "")
            if not hmac.compare_digest(given.encode(), token.encode()):
                self.send_error(403)
                return
            try:
                body = _told(held.read(pass_file))
            except TradewindError:
                self.send_error(503)
                return
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="loopback", daemon=True).start()
    return {URI: f"http://127.0.0.1:{server.server_address[1]}/pass", TOKEN_FILE: str(path)}


def _told(lent: held.Held) -> bytes:
    left_s = max(lent.lent_s + lent.for_s - clock.monotonic(), 0.0)
    ends = clock.now() + timedelta(seconds=left_s)
    return json.encode(
        {
            "AccessKeyId": lent.credentials["access_key_id"],
            "SecretAccessKey": lent.credentials["secret_access_key"],
            "Token": lent.credentials["token"],
            "Expiration": f"{ends:%Y-%m-%dT%H:%M:%SZ}",
        }
    )
