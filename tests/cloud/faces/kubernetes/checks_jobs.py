"""What is wrong with a Job or a JobSet, beyond its schema, and what of one may not be changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.cloud.faces.kubernetes import checks_pods
from tests.cloud.faces.kubernetes.names import dns_label
from tests.cloud.faces.kubernetes.problems import (
    Cause,
    invalid,
    refused_field,
    required,
    unsupported,
)
from tests.cloud.faces.kubernetes.store import Obj, copied

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_LEAST_ZERO = (
    *("parallelism", "completions", "backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes"),
    *("activeDeadlineSeconds", "ttlSecondsAfterFinished"),
)
_SUSPENDED_MAY = ("nodeSelector", "tolerations", "affinity", "schedulingGates")


def job(value: Obj) -> Iterator[Cause]:
    spec = value["spec"]
    yield from job_spec(spec, "spec")
    if spec.get("completionMode") == "Indexed" and (spec.get("completions") or 0) > 0:
        last = f"{value['metadata']['name']}-{spec['completions'] - 1}"
        if wrong := dns_label(last):
            words = f'will not able to create pod with invalid DNS label "{last}": {wrong}'
            yield invalid("metadata.name", value["metadata"]["name"], words)


def job_spec(spec: Obj, path: str) -> Iterator[Cause]:
    for each in _LEAST_ZERO:
        if (spec.get(each) or 0) < 0:
            yield invalid(f"{path}.{each}", spec[each], "must be greater than or equal to 0")
    if not spec.get("template"):
        yield required(f"{path}.template")
        return
    yield from checks_pods.template(spec["template"], f"{path}.template")
    policy = (spec["template"].get("spec") or {}).get("restartPolicy")
    if policy not in ("OnFailure", "Never"):
        words = ["OnFailure", "Never"]
        yield unsupported(f"{path}.template.spec.restartPolicy", policy, words)
    yield from _indexes(spec, path)
    rules = spec.get("podFailurePolicy")
    if rules is not None:
        yield from _failures(spec, rules, policy, path)
    replaced = spec.get("podReplacementPolicy")
    if replaced not in ("Failed", "TerminatingOrFailed"):
        known = ["Failed", "TerminatingOrFailed"]
        yield unsupported(f"{path}.podReplacementPolicy", replaced, known)
    if rules is not None and replaced != "Failed":
        yield unsupported(f"{path}.podReplacementPolicy", replaced, ["Failed"])


def _indexes(spec: Obj, path: str) -> Iterator[Cause]:
    mode, completions = spec.get("completionMode"), spec.get("completions")
    if mode not in ("Indexed", "NonIndexed"):
        yield unsupported(f"{path}.completionMode", mode, ["NonIndexed", "Indexed"])
    if mode == "Indexed":
        if completions is None:
            words = "when completion mode is Indexed"
            yield required(f"{path}.completions", words)
        elif spec.get("parallelism", 0) > 100_000 and completions > 100_000:
            words = "must be less than or equal to 100000 when completions are over 100000"
            yield invalid(f"{path}.parallelism", spec["parallelism"], words)
    limit, most = spec.get("backoffLimitPerIndex"), spec.get("maxFailedIndexes")
    if limit is not None and mode != "Indexed":
        words = "when completion mode is Indexed"
        yield invalid(
            f"{path}.backoffLimitPerIndex", limit, f"requires indexed completion mode: {words}"
        )
    if most is not None:
        if limit is None:
            words = "when maxFailedIndexes is specified"
            yield required(f"{path}.backoffLimitPerIndex", words)
        if completions is not None and most > completions:
            words = "must be less than or equal to completions"
            yield invalid(f"{path}.maxFailedIndexes", most, words)
        if most > 100_000:
            words = "must be less than or equal to 100000"
            yield invalid(f"{path}.maxFailedIndexes", most, words)
    success = spec.get("successPolicy")
    if success is not None and mode != "Indexed":
        yield invalid(f"{path}.successPolicy", "", "requires indexed completion mode")


def _failures(spec: Obj, found: Obj, policy: Any, path: str) -> Iterator[Cause]:
    if policy != "Never":
        words = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid(f"{path}.template.spec.restartPolicy", policy, words)
    rules = found.get("rules") or []
    if len(rules) > 20:
        yield Cause(f"{path}.podFailurePolicy.rules", "Too many", "FieldValueTooMany")
    inner = spec["template"].get("spec") or {}
    known = {each.get("name") for each in inner.get("containers") or ()}
    known |= {each.get("name") for each in inner.get("initContainers") or ()}
    for at, rule in enumerate(rules):
        here = f"{path}.podFailurePolicy.rules[{at}]"
        if rule.get("action") not in _ACTIONS:
            yield unsupported(f"{here}.action", rule.get("action"), _ACTIONS)
        if rule.get("action") == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            words = "requires the backoffLimitPerIndex to be set"
            yield invalid(f"{here}.action", "FailIndex", words)
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
        if codes is None and not conditions:
            words = "specifying one of OnExitCodes and OnPodConditions is required"
            yield invalid(here, "", words)
        if codes is not None and conditions:
            words = "specifying both OnExitCodes and OnPodConditions is not supported"
            yield invalid(here, "", words)
        if codes is not None:
            yield from _codes(codes, known, f"{here}.onExitCodes")
        for number, each in enumerate(conditions or ()):
            if each.get("status") not in ("True", "False", "Unknown"):
                known_statuses = ["False", "True", "Unknown"]
                yield unsupported(
                    f"{here}.onPodConditions[{number}].status", each.get("status"), known_statuses
                )


def _codes(codes: Obj, containers: set[Any], path: str) -> Iterator[Cause]:
    if codes.get("operator") not in ("In", "NotIn"):
        yield unsupported(f"{path}.operator", codes.get("operator"), ["In", "NotIn"])
    name = codes.get("containerName")
    if name is not None and name not in containers:
        yield invalid(
            f"{path}.containerName",
            name,
            "must be one of the container or initContainer names in the pod template",
        )
    values = codes.get("values") or []
    if not values:
        yield invalid(f"{path}.values", values, "at least one value is required")
    if list(values) != sorted(set(values)):
        yield invalid(f"{path}.values", values, "must be ordered and without duplicates")
    if codes.get("operator") == "In" and 0 in values:
        yield invalid(f"{path}.values", 0, "must not be 0 for the In operator")


def changed(old: Obj, new: Obj) -> Iterator[Cause]:
    before, after = old["spec"], new["spec"]
    if before.get("completions") != after.get("completions") and not (
        before.get("completionMode") == "Indexed"
        and after.get("completions") == after.get("parallelism")
    ):
        yield invalid("spec.completions", after.get("completions"), "field is immutable")
    for each in (
        *("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex"),
        *("maxFailedIndexes", "successPolicy", "managedBy", "podReplacementPolicy"),
    ):
        if each in ("maxFailedIndexes", "podReplacementPolicy"):
            continue
        if before.get(each) != after.get(each):
            yield invalid(f"spec.{each}", after.get(each), "field is immutable")
    one, two = copied(before["template"]), copied(after["template"])
    idle = before.get("suspend") and not (old.get("status") or {}).get("startTime")
    if idle:
        for each in (one, two):
            for field in _SUSPENDED_MAY:
                each.get("spec", {}).pop(field, None)
            meta = each.get("metadata") or {}
            each["metadata"] = {k: v for k, v in meta.items() if k not in ("labels", "annotations")}
    if one != two:
        yield invalid("spec.template", "core.PodTemplateSpec{…}", "field is immutable")


def jobset(value: Obj) -> Iterator[Cause]:
    spec = value["spec"]
    names = set()
    network = spec.get("network") or {}
    if network.get("subdomain") and (wrong := dns_label(network["subdomain"])):
        yield invalid("spec.network.subdomain", network["subdomain"], wrong)
    for at, each in enumerate(spec.get("replicatedJobs") or ()):
        path = f"spec.replicatedJobs[{at}]"
        if each.get("name") in names:
            yield Cause(f"{path}.name", f'Duplicate value: "{each["name"]}"', "FieldValueDuplicate")
        names.add(each.get("name"))
        inner = each["template"].get("spec") or {}
        yield from job_spec(inner, f"{path}.template.spec")
        last = f"{value['metadata']['name']}-{each['name']}-{each['replicas'] - 1}"
        pods = (inner.get("completions") or inner.get("parallelism") or 1) - 1
        if wrong := dns_label(f"{last}-{pods}-abcde"):
            words = (
                "JobSet name is too long, job names generated for this JobSet will exceed 63 "
                f"characters: {wrong}"
            )
            yield invalid("metadata.name", value["metadata"]["name"], words)


def jobset_changed(old: Obj, new: Obj) -> Iterator[Cause]:
    before, after = copied(old["spec"]), copied(new["spec"])
    for each in (before, after):
        each.pop("suspend", None)
        each.pop("ttlSecondsAfterFinished", None)
        if old["spec"].get("suspend") or new["spec"].get("suspend"):
            for one in each.get("replicatedJobs") or ():
                template = (one["template"].get("spec") or {}).get("template") or {}
                template.pop("metadata", None)
                for field in _SUSPENDED_MAY:
                    (template.get("spec") or {}).pop(field, None)
    if before != after:
        yield refused_field("spec", "field is immutable")
