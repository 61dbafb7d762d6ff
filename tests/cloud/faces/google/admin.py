"""IAM, Resource Manager, Service Usage, Cloud Billing and Secret Manager, as far as setting up, and
looking whether all is well, asks them.

Known lies: what is changed holds at once; keys of service accounts are not made by the API; a
removed role or account is gone for good, but its name of a role stays taken, as the real one's.
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Callable
from typing import Any

from tests.cloud.faces.google.calls import GoogleCall
from tests.cloud.faces.google.identity import Account, Who
from tests.cloud.faces.google.policies import ROLES
from tests.cloud.faces.google.problems import Problem
from tests.cloud.faces.google.state import State, zulu

_TITLES = {"compute": "Compute Engine API", "tpu": "Cloud TPU API", "storage": "Cloud Storage API"}
_PERMISSION = re.compile(r"[a-z][\w-]*\.[\w.]+\.?\w+")


class Admin:
    def __init__(self, state: State) -> None:
        self._state = state
        self.secrets: dict[str, list[bytes]] = {}
        self._enabling: dict[str, bool] = {}
        """Whether they are done, by the operation's name."""

    def does(self) -> dict[str, Callable[[GoogleCall], Any]]:
        accounts = "iam.projects.serviceAccounts"
        projects = "cloudresourcemanager.projects"
        secrets = "secretmanager.projects.secrets"
        return {
            f"{accounts}.create": self.make_account,
            f"{accounts}.get": lambda call: self._told(self._account(call)),
            f"{accounts}.list": self.list_accounts,
            f"{accounts}.delete": self.remove_account,
            f"{accounts}.patch": self.change_account,
            f"{accounts}.getIamPolicy": lambda call: self._policy(self._account_path(call)),
            f"{accounts}.setIamPolicy": lambda call: self._set(call, self._account_path(call)),
            f"{accounts}.testIamPermissions": lambda c: self._test(c, self._account_path(c)),
            f"{accounts}.signBlob": self.sign_old,
            "iamcredentials.projects.serviceAccounts.signBlob": self.sign,
            "iamcredentials.projects.serviceAccounts.generateAccessToken": self.lend,
            "iam.projects.roles.create": self.make_role,
            "iam.projects.roles.get": self.get_role,
            "iam.projects.roles.list": self.list_roles,
            "iam.projects.roles.patch": self.change_role,
            "iam.projects.roles.delete": self.remove_role,
            "iam.projects.roles.undelete": self.undelete_role,
            "iam.roles.get": self.get_predefined,
            f"{projects}.get": self.project,
            f"{projects}.list": self.projects,
            f"{projects}.search": self.projects,
            f"{projects}.getIamPolicy": lambda call: self._policy(f"projects/{call.project}"),
            f"{projects}.setIamPolicy": lambda call: self._set(call, f"projects/{call.project}"),
            f"{projects}.testIamPermissions": lambda c: self._test(c, f"projects/{c.project}"),
            "serviceusage.services.list": self.services,
            "serviceusage.services.get": lambda call: self._service(call, _last(call)),
            "serviceusage.services.batchGet": self.some_services,
            "serviceusage.services.enable": lambda call: self._enable(call, [_last(call)]),
            "serviceusage.services.batchEnable": lambda call: self._enable(
                call, call.json.get("serviceIds", [])
            ),
            "serviceusage.services.disable": self.disable,
            "serviceusage.operations.get": self.enabling,
            "cloudbilling.projects.getBillingInfo": self.billing,
            f"{secrets}.create": self.make_secret,
            f"{secrets}.get": self.get_secret,
            f"{secrets}.list": self.list_secrets,
            f"{secrets}.delete": self.remove_secret,
            f"{secrets}.addVersion": self.add_version,
            f"{secrets}.versions.access": self.secret,
            f"{secrets}.getIamPolicy": lambda call: self._policy(_resource(call)),
            f"{secrets}.setIamPolicy": lambda call: self._set(call, _resource(call)),
        }

    # -- policies ----------------------------------------------------------------------------------

    def _policy(self, resource: str) -> dict[str, Any]:
        return self._state.policies.get(resource)

    def _set(self, call: GoogleCall, resource: str) -> dict[str, Any]:
        policy = call.json.get("policy", {})
        for binding in policy.get("bindings", []):
            for member in binding.get("members", []):
                sort, _, email = member.partition(":")
                if sort == "serviceAccount" and not self._state.knows(email):
                    raise Problem(400, f"Service account {email} does not exist.")
        return self._state.policies.put(resource, policy)

    def _test(self, call: GoogleCall, resource: str) -> dict[str, Any]:
        asked = call.json.get("permissions", [])
        for each in asked:
            if "*" in each or not _PERMISSION.fullmatch(each):
                raise Problem(400, f"Permission {each} is not valid for this resource.")
        held = [resource] if "/" not in resource[9:] else [resource, f"projects/{call.project}"]
        has = [each for each in asked if self._state.policies.has(call.who, each, held)]
        return {"permissions": has} if has else {}

    # -- service accounts --------------------------------------------------------------------------

    def _account(self, call: GoogleCall) -> Account:
        email = re.sub(r":\w+$", "", call.params.get("name") or call.params["resource"])
        email = email.rpartition("/")[2]
        for each in self._state.identities.accounts.values():
            if email in (each.email, each.unique_id):
                return each
        words = f"Unknown service account: projects/{call.project}/serviceAccounts/{email}"
        raise Problem(404, words)

    def _account_path(self, call: GoogleCall) -> str:
        return f"projects/{call.project}/serviceAccounts/{self._account(call).email}"

    def _told(self, account: Account) -> dict[str, Any]:
        project = account.email.partition("@")[2].partition(".")[0]
        return {
            "name": f"projects/{project}/serviceAccounts/{account.email}",
            "projectId": project,
            "uniqueId": account.unique_id,
            "email": account.email,
            "displayName": account.display_name,
            "description": account.description,
            "etag": "MDEwMjE5MjA=",
            "oauth2ClientId": account.unique_id,
            **({"disabled": True} if account.disabled else {}),
        }

    def make_account(self, call: GoogleCall) -> dict[str, Any]:
        name = call.json.get("accountId", "")
        if not re.fullmatch(r"[a-z][a-z0-9-]{4,28}[a-z0-9]", name):
            words = f"Invalid account ID {name}: it must match [a-z]([-a-z0-9]*[a-z0-9]), 6-30 long"
            raise Problem(400, words)
        email = f"{name}@{call.project}.iam.gserviceaccount.com"
        if email in self._state.identities.accounts:
            words = f"Service account {name} already exists within project projects/{call.project}."
            raise Problem(409, words)
        told = call.json.get("serviceAccount", {})
        made = self._state.identities.make(
            email, told.get("displayName", ""), told.get("description", "")
        )
        self._state.made[email] = self._state.world.now()
        return self._told(made)

    def list_accounts(self, call: GoogleCall) -> dict[str, Any]:
        there = [
            self._told(each)
            for each in self._state.identities.accounts.values()
            if each.email.partition("@")[2].startswith(f"{call.project}.")
        ]
        return _page(there, "accounts", call)

    def remove_account(self, call: GoogleCall) -> dict[str, Any]:
        account = self._account(call)
        del self._state.identities.accounts[account.email]
        self._state.policies.of.pop(self._path_of(call, account), None)
        return {}

    def _path_of(self, call: GoogleCall, account: Account) -> str:
        return f"projects/{call.project}/serviceAccounts/{account.email}"

    def change_account(self, call: GoogleCall) -> dict[str, Any]:
        account = self._account(call)
        told = call.json.get("serviceAccount", {})
        account.display_name = told.get("displayName", account.display_name)
        account.description = told.get("description", account.description)
        return self._told(account)

    def sign(self, call: GoogleCall) -> dict[str, Any]:
        data = base64.b64decode(call.json.get("payload", ""))
        number, signature = self._state.identities.sign(self._account(call).email, data)
        return {"keyId": number, "signedBlob": base64.b64encode(signature).decode()}

    def sign_old(self, call: GoogleCall) -> dict[str, Any]:
        data = base64.b64decode(call.json.get("bytesToSign", ""))
        number, signature = self._state.identities.sign(self._account(call).email, data)
        return {"keyId": number, "signature": base64.b64encode(signature).decode()}

    def lend(self, call: GoogleCall) -> dict[str, Any]:
        for_s = float(str(call.json.get("lifetime", "3600s")).rstrip("s"))
        who = Who(self._account(call).email)
        token = self._state.identities.token(who, " ".join(call.json.get("scope", [])), for_s)
        until = time.time() + for_s
        return {"accessToken": token, "expireTime": zulu(until)[:19] + "Z"}

    # -- roles -------------------------------------------------------------------------------------

    def _role(self, call: GoogleCall, deleted: bool = True) -> dict[str, Any]:
        name = call.params["name"]
        found = self._state.policies.roles.get(name)
        if found is None or (found.get("deleted") and not deleted):
            raise Problem(404, f"The role named {name} was not found.")
        return found

    def _valid(self, told: dict[str, Any]) -> None:
        for each in told.get("includedPermissions", []):
            if not _PERMISSION.fullmatch(each):
                raise Problem(400, f"Permission {each} is not valid.")

    def make_role(self, call: GoogleCall) -> dict[str, Any]:
        name = call.json.get("roleId", "")
        if not re.fullmatch(r"[a-zA-Z0-9_.]{3,64}", name):
            raise Problem(400, f"The role_id {name} must match [a-zA-Z0-9_.]{{3,64}}.")
        path = f"projects/{call.project}/roles/{name}"
        told = call.json.get("role", {})
        self._valid(told)
        known = self._state.policies.roles
        if path in known:
            if known[path].get("deleted"):
                words = f"You can't create a role with role_id ({name}) where there is an existing"
                words += " role with that role_id in a deleted state."
                raise Problem(400, words, "failedPrecondition", "FAILED_PRECONDITION")
            words = f"A role named {name} in projects/{call.project} already exists."
            raise Problem(409, words)
        known[path] = {**told, "name": path, "stage": told.get("stage", "ALPHA")}
        return self._role_told(known[path])

    def _role_told(self, role: dict[str, Any]) -> dict[str, Any]:
        return {**role, "etag": base64.b64encode(_digest(str(role))).decode()}

    def get_role(self, call: GoogleCall) -> dict[str, Any]:
        return self._role_told(self._role(call))

    def list_roles(self, call: GoogleCall) -> dict[str, Any]:
        every = self._state.policies.roles.values()
        deleted = call.params.get("showDeleted") == "true"
        there = [
            self._role_told(each)
            for each in every
            if each["name"].startswith(f"projects/{call.project}/")
            and (deleted or not each.get("deleted"))
        ]
        return _page(there, "roles", call)

    def change_role(self, call: GoogleCall) -> dict[str, Any]:
        role = self._role(call, deleted=False)
        told = dict(call.json)
        etag = told.pop("etag", "")
        if etag and etag != self._role_told(role)["etag"]:
            words = "There were concurrent policy changes. Please retry the whole read-modify-write"
            raise Problem(409, f"{words} with exponential backoff.", "aborted", "ABORTED")
        self._valid(told)
        mask = call.params.get("updateMask", "")
        names = [each.strip() for each in mask.split(",") if each] or list(told)
        role |= {each: told[each] for each in names if each in told}
        return self._role_told(role)

    def remove_role(self, call: GoogleCall) -> dict[str, Any]:
        role = self._role(call, deleted=False)
        role["deleted"] = True
        return self._role_told(role)

    def undelete_role(self, call: GoogleCall) -> dict[str, Any]:
        role = self._role(call)
        role.pop("deleted", None)
        return self._role_told(role)

    def get_predefined(self, call: GoogleCall) -> dict[str, Any]:
        name = call.params["name"]
        if name not in ROLES:
            raise Problem(404, f"The role named {name} was not found.")
        return {"name": name, "title": name, "includedPermissions": list(ROLES[name])}

    # -- projects ----------------------------------------------------------------------------------

    def project(self, call: GoogleCall) -> dict[str, Any]:
        project = self._state.found(call.project)
        assert call.method is not None
        if call.method.version == "v3":
            told = {"name": f"projects/{project.number}", "displayName": project.name}
            return {**told, "projectId": project.id, "state": project.state}
        told = {"projectNumber": project.number, "projectId": project.id, "name": project.name}
        return {**told, "lifecycleState": project.state}

    def projects(self, call: GoogleCall) -> dict[str, Any]:
        policies = self._state.policies
        right = "resourcemanager.projects.get"
        return {
            "projects": [
                {"projectId": each.id, "projectNumber": each.number, "name": each.name}
                for each in self._state.projects.values()
                if policies.has(call.who, right, [f"projects/{each.id}"])
            ]
        }

    def billing(self, call: GoogleCall) -> dict[str, Any]:
        project = self._state.found(call.project)
        told = {"name": f"projects/{project.id}/billingInfo", "projectId": project.id}
        account = "billingAccounts/012345-6789AB-CDEF01" if project.billing else ""
        return {**told, "billingAccountName": account, "billingEnabled": project.billing}

    # -- services ----------------------------------------------------------------------------------

    def _service(self, call: GoogleCall, name: str) -> dict[str, Any]:
        project = self._state.found(call.project)
        short = name.partition(".")[0]
        config = {"name": name, "title": _TITLES.get(short, f"{short} API")}
        return {
            "name": f"projects/{project.number}/services/{name}",
            "config": config,
            "state": "ENABLED" if name in project.services else "DISABLED",
            "parent": f"projects/{project.number}",
        }

    def services(self, call: GoogleCall) -> dict[str, Any]:
        from tests.cloud.faces.google.state import SERVICES

        wished = call.params.get("filter", "")
        there = [self._service(call, f"{each}.googleapis.com") for each in SERVICES]
        if wished:
            state = wished.rpartition(":")[2].upper()
            there = [each for each in there if each["state"] == state]
        return _page(there, "services", call)

    def some_services(self, call: GoogleCall) -> dict[str, Any]:
        from urllib.parse import parse_qsl

        asked = parse_qsl(str(call.environ.get("QUERY_STRING", "")))
        names = [value.rpartition("/")[2] for name, value in asked if name == "names"]
        return {"services": [self._service(call, each) for each in names]}

    def _enable(self, call: GoogleCall, names: list[str]) -> dict[str, Any]:
        from tests.cloud.faces.google.state import SERVICES

        project = self._state.found(call.project)
        for each in names:
            if each.removesuffix(".googleapis.com") not in SERVICES:
                words = f"Not found or permission denied for service(s): {each}."
                raise Problem(403, words)
            if not project.billing and each.startswith(("compute", "tpu")):
                words = f"Billing account for project '{project.number}' is not found. Billing must"
                words += f" be enabled for activation of service(s) '{each}' to proceed."
                raise Problem(400, words, "failedPrecondition", "FAILED_PRECONDITION")
        name = f"operations/acat.p2-{project.number}-{self._state.number()}"

        def enabled() -> None:
            project.services |= set(names)
            self._enabling[name] = True

        self._enabling[name] = False
        self._state.after(self._state.dials.enable_s, enabled)
        return self._told_enabling(name)

    def enabling(self, call: GoogleCall) -> dict[str, Any]:
        name = call.params["name"]
        if name not in self._enabling:
            raise Problem(404, f"Operation '{name}' was not found")
        return self._told_enabling(name)

    def _told_enabling(self, name: str) -> dict[str, Any]:
        if not self._enabling[name]:
            return {"name": name, "done": False}
        kind = "type.googleapis.com/google.api.serviceusage.v1.EnableService"
        return {"name": name, "done": True, "response": {"@type": kind}}

    def disable(self, call: GoogleCall) -> dict[str, Any]:
        project = self._state.found(call.project)
        project.services.discard(_last(call))
        name = f"operations/acat.p2-{project.number}-{self._state.number()}"
        return {"name": name, "done": True, "response": {}}

    # -- secrets -----------------------------------------------------------------------------------

    def _secret(self, call: GoogleCall) -> str:
        path = _resource(call)
        if path not in self.secrets:
            raise Problem(404, f"Secret [{path}] not found or has no versions.")
        return path

    def make_secret(self, call: GoogleCall) -> dict[str, Any]:
        path = f"projects/{call.project}/secrets/{call.params.get('secretId', '')}"
        if path in self.secrets:
            raise Problem(409, f"Secret [{path}] already exists.")
        self.secrets[path] = []
        return {"name": path, **call.json}

    def get_secret(self, call: GoogleCall) -> dict[str, Any]:
        return {"name": self._secret(call), "replication": {"automatic": {}}}

    def list_secrets(self, call: GoogleCall) -> dict[str, Any]:
        return {"secrets": [{"name": each} for each in self.secrets]}

    def remove_secret(self, call: GoogleCall) -> dict[str, Any]:
        del self.secrets[self._secret(call)]
        return {}

    def add_version(self, call: GoogleCall) -> dict[str, Any]:
        path = self._secret(call)
        self.secrets[path].append(base64.b64decode(call.json.get("payload", {}).get("data", "")))
        return {"name": f"{path}/versions/{len(self.secrets[path])}", "state": "ENABLED"}

    def secret(self, call: GoogleCall) -> dict[str, Any]:
        path = self._secret(call)
        wished = call.params["name"].rpartition("/")[2]
        versions = self.secrets[path]
        number = len(versions) if wished == "latest" else int(wished) if wished.isdigit() else 0
        if not 1 <= number <= len(versions):
            raise Problem(404, f"Secret Version [{path}/versions/{wished}] not found.")
        data = base64.b64encode(versions[number - 1]).decode()
        return {"name": f"{path}/versions/{number}", "payload": {"data": data}}


def _last(call: GoogleCall) -> str:
    return call.params["name"].rpartition("/")[2]


def _resource(call: GoogleCall) -> str:
    value = call.params.get("name") or call.params.get("resource") or call.params["parent"]
    found = re.match(r"projects/[^/]+/(secrets/[^/:]+)", value)
    return f"projects/{call.project}/{found[1]}" if found else value


def _page(there: list[dict[str, Any]], name: str, call: GoogleCall) -> dict[str, Any]:
    size = int(call.params.get("pageSize") or 100)
    start = int(call.params.get("pageToken") or 0)
    told: dict[str, Any] = {name: there[start : start + size]}
    if start + size < len(there):
        told["nextPageToken"] = str(start + size)
    return told


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:9]
