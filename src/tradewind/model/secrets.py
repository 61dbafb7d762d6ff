"""Where a job's secrets are: references that name them, and never values.

`aws-ssm:/tradewind/hf-token` travels through workloads, plans and journals; whoever starts the job
looks it up there (supervisor/secrets.py). Another place is one more line of SCHEMES, which begins
with its cloud's name, and a reader in that cloud's folder.
"""

from __future__ import annotations

import re

from msgspec import Struct

from tradewind.base.errors import InvalidValue

FILE, AWS_SSM, AWS_SECRETS_MANAGER = "file", "aws-ssm", "aws-secretsmanager"
GCP_SECRET_MANAGER, KUBERNETES_SECRET = "gcp-secretmanager", "kubernetes-secret"
_PATH = r"(?:~|/)[^\0\n]*"
_PARAMETER = r"arn:aws[a-z-]*:ssm:[a-z0-9-]+:\d{12}:parameter/[\w./-]+|[\w./-]+"
_SECRET = (
    r"(?:arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[\w/+=.@-]+|[\w/+=.@-]+)"
    r"(?:#[^\0\n#]+)?"
)
_GCP_SECRET = (
    r"(?:projects/[a-z0-9:.-]+/secrets/)?[\w-]+(?:/versions/(?:latest|\d+))?(?:#[^\0\n#]+)?"
)


class Scheme(Struct, frozen=True):
    pattern: str
    """Of what follows the colon."""
    example: str


SCHEMES = {
    FILE: Scheme(_PATH, "file:~/.hf_token"),
    AWS_SSM: Scheme(_PARAMETER, "aws-ssm:/path/name"),
    AWS_SECRETS_MANAGER: Scheme(_SECRET, "aws-secretsmanager:name#json-key"),
    GCP_SECRET_MANAGER: Scheme(_GCP_SECRET, "gcp-secretmanager:name#json-key"),
    KUBERNETES_SECRET: Scheme(
        r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?#[\w.-]+", "kubernetes-secret:name#key"
    ),
}
PATTERN = "|".join(f"{name}:(?:{each.pattern})" for name, each in SCHEMES.items())
EXAMPLES = ", ".join(each.example for each in SCHEMES.values())


class Reference(Struct, frozen=True):
    scheme: str
    name: str
    """What the scheme calls it: a path, a parameter's name, an ARN."""
    key: str = ""
    """Of the JSON object that the secret is; "": all of it."""


def parse(text: str) -> Reference:
    """The error does not repeat the text: it may well be the secret itself."""
    scheme, _, rest = text.partition(":")
    if scheme not in SCHEMES:
        raise InvalidValue("it does not say where the secret is", hint=EXAMPLES)
    known = SCHEMES[scheme]
    if not re.fullmatch(known.pattern, rest):
        raise InvalidValue(f"what follows {scheme}: is not a name there", hint=known.example)
    if scheme in (AWS_SECRETS_MANAGER, GCP_SECRET_MANAGER, KUBERNETES_SECRET):
        name, _, key = rest.partition("#")
        return Reference(scheme, name, key)
    return Reference(scheme, rest)
