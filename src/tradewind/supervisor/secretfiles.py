"""Files that hold secrets by their well-known names, and so are not packed without being asked for.

A bundle lies in the store, for all who may read that. Two kinds are looked into, because most of
them are harmless: certificates, and npm's settings.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_NAMES = """
.env
.env.*
*.env
!.env.example
!.env.sample
!.env.template
!.env.dist
!.env.defaults
!example.env
!sample.env
!template.env
.envrc
**/.aws/credentials
**/.aws/sso/cache/*
**/.azure/*.json
**/.config/gcloud/
application_default_credentials.json
service-account*.json
service_account*.json
**/.kube/config
kubeconfig
*.kubeconfig
**/.docker/config.json
.dockercfg
**/.ssh/*
id_rsa
id_dsa
id_ecdsa
id_ecdsa_sk
id_ed25519
id_ed25519_sk
*.pem
*.key
*.ppk
*.p12
*.pfx
*.jks
*.keystore
*.kdbx
.netrc
_netrc
.s3cfg
.boto
.passwd-s3fs
**/.streamlit/secrets.toml
.pypirc
.npmrc
.git-credentials
.htpasswd
.pgpass
.my.cnf
.vault-token
**/.huggingface/token
*.tfstate
"""
_LOOKED_AT_BYTES = 1 << 20


def is_secret(name: str, path: Path) -> bool:
    """`name` is the file's path in the bundle."""
    return bool(_known().check_file(name).include) and not _is_harmless(path)


@cache
def _known() -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(_NAMES.split())


def _is_harmless(path: Path) -> bool:
    if path.name != ".npmrc" and path.suffix != ".pem":
        return False
    try:
        with path.open("rb") as stream:
            text = stream.read(_LOOKED_AT_BYTES)
    except OSError:
        return False
    if path.name == ".npmrc":
        return not any(word in text for word in (b"_auth", b"_password", b"_authToken"))
    return b"-----BEGIN " in text and b"PRIVATE KEY" not in text
