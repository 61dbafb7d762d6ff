"""The fields of JobSet, Kueue and Volcano, in the form of the published schemas. Written from their
API references; what this project and its tests never use is left out, and so refused.

Known lies: defaults of Kueue's queues that decide nothing here are not filled in.
"""

from __future__ import annotations

from typing import Any

S: dict[str, Any] = {"type": "string"}
I: dict[str, Any] = {"type": "integer", "format": "int32"}  # noqa: E741
B: dict[str, Any] = {"type": "boolean"}
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_CORE = "io.k8s.api.core.v1."


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def _fields(required: str = "", /, **fields: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": fields, "additionalProperties": False}
    return found | ({"required": required.split()} if required else {})


def _many(of: dict[str, Any], key: str = "") -> dict[str, Any]:
    return {"type": "array", "items": of} | ({"x-key": key} if key else {})


def _of(values: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


def _one(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


def _kind(spec: dict[str, Any] | None, status: dict[str, Any] | None, **more: Any) -> Any:
    fields = {"apiVersion": S, "kind": S, "metadata": _ref(f"{_META}ObjectMeta"), **more}
    if spec is not None:
        fields["spec"] = spec
    if status is not None:
        fields["status"] = status
    return _fields("", **fields)


_QUANTITY = _ref("io.k8s.apimachinery.pkg.api.resource.Quantity")
_TIME = _ref(f"{_META}Time")
_CONDITIONS = _many(_ref(f"{_META}Condition"))
_SELECTOR = _ref(f"{_META}LabelSelector")
_TEMPLATE = _ref(f"{_CORE}PodTemplateSpec")

_JOBSET = _fields(
    "",
    coordinator=_fields("replicatedJob", replicatedJob=S, jobIndex=I, podIndex=I),
    failurePolicy=_fields(
        "",
        maxRestarts=I,
        restartStrategy=_one("Recreate", "BlockingRecreate", "InPlaceRestart"),
        rules=_many(
            _fields(
                "name action",
                name=S,
                action=_one(
                    "FailJobSet",
                    "RestartJobSet",
                    "RestartJobSetAndIgnoreMaxRestarts",
                    "RestartJob",
                    "RestartJobAndIgnoreMaxRestarts",
                ),
                onJobFailureReasons=_many(S),
                onJobFailureMessagePatterns=_many(S),
                targetReplicatedJobs=_many(S),
            )
        ),
    ),
    managedBy=S,
    network=_fields("", enableDNSHostnames=B, publishNotReadyAddresses=B, subdomain=S),
    replicatedJobs=_many(
        _fields(
            "name template",
            name=S,
            groupName=S,
            replicas=I,
            template=_ref("io.k8s.api.batch.v1.JobTemplateSpec"),
            dependsOn=_many(_fields("name status", name=S, status=_one("Ready", "Complete"))),
        ),
        "name",
    ),
    startupPolicy=_fields("startupPolicyOrder", startupPolicyOrder=_one("AnyOrder", "InOrder")),
    successPolicy=_fields("operator", operator=_one("All", "Any"), targetReplicatedJobs=_many(S)),
    suspend=B,
    ttlSecondsAfterFinished=I,
)
_JOBSET_STATUS = _fields(
    "",
    conditions=_CONDITIONS,
    replicatedJobsStatus=_many(
        _fields("name", name=S, ready=I, succeeded=I, failed=I, active=I, suspended=I)
    ),
    restarts=I,
    restartsCountTowardsMax=I,
    terminalState=S,
)
_POD_SET = _fields(
    "template",
    name=S,
    count=I,
    minCount=I,
    template=_TEMPLATE,
    topologyRequest=_fields(
        "", required=S, preferred=S, unconstrained=B, podIndexLabel=S, podSetGroupName=S
    ),
)
_ADMISSION = _fields(
    "clusterQueue podSetAssignments",
    clusterQueue=S,
    podSetAssignments=_many(
        _fields("name", name=S, count=I, flavors=_of(S), resourceUsage=_of(_QUANTITY))
    ),
)
_USAGE = _many(
    _fields(
        "name resources",
        name=S,
        resources=_many(_fields("name", name=S, total=_QUANTITY, borrowed=_QUANTITY)),
    )
)
_STOP = _one("None", "Hold", "HoldAndDrain")

SCHEMAS: dict[str, Any] = {
    "any": {"type": "object"},
    "jobset.JobSet": _kind(_JOBSET, _JOBSET_STATUS),
    "kueue.LocalQueue": _kind(
        _fields("", clusterQueue=S, stopPolicy=_STOP, fairSharing=_fields("", weight=_QUANTITY)),
        _fields(
            "",
            conditions=_CONDITIONS,
            pendingWorkloads=I,
            reservingWorkloads=I,
            admittedWorkloads=I,
            flavorsReservation=_USAGE,
            flavorsUsage=_USAGE,
        ),
    ),
    "kueue.ClusterQueue": _kind(
        _fields(
            "",
            cohort=S,
            cohortName=S,
            namespaceSelector=_SELECTOR,
            queueingStrategy=_one("StrictFIFO", "BestEffortFIFO"),
            stopPolicy=_STOP,
            preemption=_fields(
                "",
                withinClusterQueue=_one("Never", "LowerPriority", "LowerOrNewerEqualPriority"),
                reclaimWithinCohort=_one("Never", "LowerPriority", "Any"),
            ),
            resourceGroups=_many(
                _fields(
                    "coveredResources flavors",
                    coveredResources=_many(S),
                    flavors=_many(
                        _fields(
                            "name resources",
                            name=S,
                            resources=_many(
                                _fields(
                                    "name nominalQuota",
                                    name=S,
                                    nominalQuota=_QUANTITY,
                                    borrowingLimit=_QUANTITY,
                                    lendingLimit=_QUANTITY,
                                )
                            ),
                        )
                    ),
                )
            ),
        ),
        _fields(
            "",
            conditions=_CONDITIONS,
            pendingWorkloads=I,
            reservingWorkloads=I,
            admittedWorkloads=I,
            flavorsReservation=_USAGE,
            flavorsUsage=_USAGE,
        ),
    ),
    "kueue.ResourceFlavor": _kind(
        _fields(
            "",
            nodeLabels=_of(S),
            nodeTaints=_many(_ref(f"{_CORE}Taint")),
            tolerations=_many(_ref(f"{_CORE}Toleration")),
            topologyName=S,
        ),
        None,
    ),
    "kueue.WorkloadPriorityClass": _kind(None, None, value=I, description=S)
    | {"required": ["value"]},
    "kueue.Workload": _kind(
        _fields(
            "",
            active=B,
            maximumExecutionTimeSeconds=I,
            podSets=_many(_POD_SET),
            priority=I,
            priorityClassName=S,
            priorityClassSource=S,
            priorityClassRef=_fields("group kind name", group=S, kind=S, name=S),
            queueName=S,
        ),
        _fields(
            "",
            admission=_ADMISSION,
            conditions=_CONDITIONS,
            requeueState=_fields("", count=I, requeueAt=_TIME),
            resourceRequests=_many(_fields("name", name=S, resources=_of(_QUANTITY))),
        ),
    ),
    "volcano.PodGroup": _kind(
        _fields(
            "",
            minMember=I,
            minResources=_of(_QUANTITY),
            minTaskMember=_of(I),
            priorityClassName=S,
            queue=S,
        ),
        _fields(
            "",
            phase=S,
            conditions=_many(
                _fields(
                    "",
                    type=S,
                    status=S,
                    transitionID=S,
                    lastTransitionTime=_TIME,
                    reason=S,
                    message=S,
                )
            ),
            running=I,
            succeeded=I,
            failed=I,
        ),
    ),
    "volcano.Queue": _kind(
        _fields("", weight=I, capability=_of(_QUANTITY), reclaimable=B, parent=S),
        _fields("", state=S, pending=I, running=I, inqueue=I, allocated=_of(_QUANTITY)),
    ),
}
