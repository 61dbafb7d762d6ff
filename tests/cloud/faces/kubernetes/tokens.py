"""Who a bearer token is. Tests make users (control.py), pods have those of service accounts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from tests.cloud.faces.kubernetes.cluster import Cluster
from tests.cloud.faces.kubernetes.problems import unauthorized
from tests.cloud.faces.kubernetes.rbac import ANONYMOUS, User
from tests.cloud.faces.kubernetes.resources import SERVICEACCOUNTS


class Tokens:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[str, tuple[User, float]] = {}
        self._count = 0

    def make(self, user: User, lives_s: float = 10**9) -> str:
        self._count += 1
        text = f"{user.name}/{self._count}/{self._cluster.random.random()}"
        token = "tk-" + hashlib.sha256(text.encode()).hexdigest()[:40]
        self._known[token] = user, self._cluster.now() + lives_s
        return token

    def for_account(self, namespace: str, name: str, lives_s: float = 3607) -> str:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        return self.make(User(f"system:serviceaccount:{namespace}:{name}", groups), lives_s)

    def expire(self, name: str) -> None:
        """All tokens of a user."""
        for token, (user, _) in list(self._known.items()):
            if user.name == name:
                self._known[token] = user, 0.0

    def user(self, headers: Mapping[str, str]) -> User:
        given = headers.get("authorization", "")
        if not given:
            return ANONYMOUS
        sort, _, token = given.partition(" ")
        known = self._known.get(token.strip())
        if sort.lower() != "bearer" or known is None or known[1] <= self._cluster.now():
            raise unauthorized()
        user = known[0]
        if user.name.startswith("system:serviceaccount:"):
            _, _, namespace, name = user.name.split(":")
            if self._cluster.store.get(SERVICEACCOUNTS, namespace, name) is None:
                raise unauthorized()
        return user
