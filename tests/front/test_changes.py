"""What HAProxy is told, from what it has and what is wanted."""

from __future__ import annotations

from dataclasses import replace

from tradewind.front import stats
from tradewind.front.changes import changes
from tradewind.front.routes import Backend, Front, State
from tradewind.front.stats import Health, Replica

FRONT = Front(8000)
BACKEND = Backend("r1", "10.0.0.7", 8000, at_once=4)
UP = Replica(
    "r1", "10.0.0.7:8000", Health.UP, draining=False, weight=100, at_once=4, current=0, queued=0,
    total=9, errors=0, retried=0, rate=1, probe="L7OK",
)  # fmt: skip


def told(seen: list[Replica], *wanted: Backend) -> list[str]:
    return [command for each in changes(FRONT, seen, wanted) for command in each.commands]


def test_a_new_replica_is_down_until_its_probe_passes() -> None:
    add, *rest = told([], BACKEND)
    assert add.startswith("add server replicas/r1 10.0.0.7:8000 weight 100 maxconn 4 check ")
    assert "observe layer7" in add
    assert rest[0] == "set server replicas/r1 state drain", "nothing comes while it is declared"
    down = next(i for i, command in enumerate(rest) if command.endswith("health down"))
    ready = next(i for i, command in enumerate(rest) if command.endswith("state ready"))
    assert down < ready


def test_what_is_as_wanted_is_left_alone() -> None:
    assert told([UP], BACKEND) == []
    assert told([replace(UP, health=Health.DOWN)], BACKEND) == []
    assert told([], replace(BACKEND, state=State.DRAINING)) == [], "it is not there anyway"


def test_weights_limits_and_states_are_changed_in_place() -> None:
    assert told([UP], replace(BACKEND, weight=50)) == ["set server replicas/r1 weight 50"]
    assert told([UP], replace(BACKEND, at_once=0)) == ["set maxconn server replicas/r1 0"]
    drained = replace(BACKEND, state=State.DRAINING)
    assert told([UP], drained) == ["set server replicas/r1 state drain"]
    draining = replace(UP, health=Health.DRAINING, draining=True)
    assert told([draining], drained) == []
    assert told([draining], BACKEND) == ["set server replicas/r1 state ready"]


def test_a_replica_leaves_by_draining_and_only_when_its_answers_are_over() -> None:
    assert told([UP]) == ["set server replicas/r1 state drain"]
    draining = replace(UP, health=Health.DRAINING, draining=True, current=1)
    assert told([draining]) == []
    gone = ["set server replicas/r1 state maint", "del server replicas/r1"]
    assert told([replace(draining, current=0)]) == gone
    assert told([replace(draining, current=0, queued=1)]) == []
    assert told([replace(UP, health=Health.DOWN)]) == gone
    assert told([replace(UP, health=Health.DOWN, current=2)]) == [
        "set server replicas/r1 state drain"
    ]


def test_one_that_was_closed_is_opened_by_its_probe_too() -> None:
    closed = replace(UP, health=Health.CLOSED)
    assert told([closed], BACKEND) == told([], BACKEND)[1:]
    assert told([closed], replace(BACKEND, state=State.DRAINING)) != told([closed], BACKEND)


def test_one_at_another_address_is_another() -> None:
    assert told([UP], replace(BACKEND, port=9000)) == ["set server replicas/r1 state drain"]


HEAD = (
    "# pxname,svname,qcur,scur,slim,stot,dreq,econ,eresp,wretr,status,rate,check_status,last_chk,"
    "req_rate,req_tot,addr,uweight,\n"
)
STAT = """\
front,FRONTEND,,7,100,40,3,,,,OPEN,5,,,6,50,,,
replicas,r1,1,4,4,30,,1,2,3,UP,5,L7OK,,,,10.0.0.7:8000,100,
replicas,r2,0,0,,0,,0,0,0,DOWN 1/2,0,L4CON,Connection refused,,,[::1]:9,50,
replicas,BACKEND,2,5,20,30,0,1,2,3,UP,5,,,,,,150,
rates,BACKEND,0,0,1,0,0,0,0,0,UP,0,,,,,,0,
"""
STATES = """\
1
# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight
3 replicas 1 r1 10.0.0.7 2 8 100
3 replicas 2 r2 ::1 0 0 50
"""


def test_what_haproxy_says_becomes_values() -> None:
    seen = stats.read(HEAD + STAT, STATES, "2\n")
    assert (seen.current, seen.queued, seen.held, seen.rate, seen.total) == (7, 3, 2, 6, 50)
    first, second = seen.replicas
    assert (first.health, first.draining, first.errors) == (Health.DRAINING, True, 3)
    assert (second.health, second.at_once, second.probe) == (
        Health.DOWN, 0, "L4CON Connection refused",
    )  # fmt: skip
    assert second.wanted() == Backend("r2", "::1", 9, weight=50)
    assert first.wanted() == replace(BACKEND, state=State.DRAINING)
