"""Another cloud is only a table: nobody's, and unlike Lambda's wherever it can be."""

from __future__ import annotations

import base64
from pathlib import Path

from tests.cloud import server
from tests.cloud.control import Control
from tests.cloud.face import Billing
from tests.cloud.faces.rest.asking import ask
from tests.cloud.faces.rest.face import Rest
from tests.cloud.faces.rest.shapes import Each, One
from tests.cloud.faces.rest.table import Error, Field, Kind, Paging, Route, Table

_VM = {"uuid": "$id", "label": "$name", "phase": "$state", "size": "$kind.name"}

FACE = Rest(
    Table(
        name="nimbus",
        routes=(
            Route(
                "create",
                "POST",
                "/v2/vms",
                "launch",
                {"vm": One("machine", _VM)},
                {
                    "kind": Field("spec.size", needed=True),
                    "region": Field("spec.site", default="north"),
                    "name": Field("label", needed=True),
                    "token": Field("request"),
                    "user_data": Field("cloud_init"),
                },
                status=201,
            ),
            Route("delete", "DELETE", "/v2/vms/{id}", "end", {}, status=202),
            Route(
                "list",
                "GET",
                "/v2/vms",
                "machines",
                {"vms": Each("machines", _VM), "cursor": "$next?"},
                pages="machines",
            ),
        ),
        states={
            "pending": "CREATING",
            "running": "UP",
            "stopping": "DOWN",
            "stopped": "DOWN",
            "ending": "DELETING",
            "ended": "DELETED",
        },
        kinds={"large": Kind(8, 1, 2.0)},
        regions={"north": "The North"},
        errors={
            sort: Error(status, sort.upper(), sort)
            for sort, status in {
                "unauthorized": 403,
                "invalid": 422,
                "unknown": 404,
                "duplicate": 409,
                "capacity": 507,
            }.items()
        },
        error_shape={"fault": "$code", "status": "$status"},
        paging=Paging("per_page", "cursor", most=2),
        ids="vm-{}",
        unique_names=True,
        user_data="base64",
        billing=Billing(step_s=3600.0),
        metadata={"/self/uuid": "$id"},
    )
)


def test_another_cloud_is_only_a_table(tmp_path: Path) -> None:
    with server.running(tmp_path, __name__, Control, "process") as cloud:

        def create(label: str, script: str = "", **more: str) -> tuple[int, object]:
            text = base64.b64encode(script.encode()).decode()
            spec = {"spec": {"size": "large"}, "label": label, "cloud_init": text}
            return ask(cloud, "POST", "/v2/vms", {**spec, **more})

        say = '#!/bin/sh\necho "I am $(curl -s ${TRADEWIND_BODY_METADATA}self/uuid)."\nsleep 999\n'
        status, told = create("one", say, request="r1")
        assert (status, told) == (
            201,
            {"vm": {"uuid": "vm-1", "label": "one", "phase": "CREATING", "size": "large"}},
        )
        assert create("one", say, request="r1")[1]["vm"]["uuid"] == "vm-1"  # type: ignore[index]
        assert create("one") == (409, {"fault": "DUPLICATE", "status": 409})
        cloud.wait_console("vm-1", "I am vm-1.")
        for label in ("two", "three"):
            assert create(label)[0] == 201
        first = ask(cloud, "GET", "/v2/vms")[1]
        assert [each["label"] for each in first["vms"]] == ["one", "two"]
        rest = ask(cloud, "GET", f"/v2/vms?cursor={first['cursor']}")[1]
        assert [each["label"] for each in rest["vms"]] == ["three"]
        assert "cursor" not in rest
        assert ask(cloud, "DELETE", "/v2/vms/vm-1") == (202, {})
        cloud.wait("vm-1", "ended")
        paid = next(each for each in cloud.bill()["machines"] if each["id"] == "vm-1")
        assert (paid["seconds"], paid["usd"]) == (3600, 2.0)
