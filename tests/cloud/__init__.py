"""A cloud with bodies, for tests: its machines are real hosts on this computer, and it speaks as
one cloud or another does, by a face.

It is as scarce, as late and as forgetful as a real one, gives every machine a body that runs its
user-data, and keeps a bill. It is a process of its own, and several may run at once.

    from tests.cloud.faces.ec2.control import Control, running

    @pytest.fixture
    def cloud(tmp_path: Path) -> Iterator[Control]:
        with running(tmp_path / "cloud", bodies="none") as cloud:   # or process, netns, auto
            yield cloud

By hand: `python -m tests.cloud FACE --state DIR`; DIR/url tells where it is.

**What a test can do** is in control.py: capacity, quota, fail (before or after the effect), lose,
dials (lag_s, pending_s, shutting_down_s, speed, pace_s, body_env), prices, trace, interrupt, warn,
ask_to_end, crash, advance and hold (its clock); and look at: bill, left, everything, calls, alive,
console, state, wait. A face may have more.

**Bodies.** `none` for tests of the API; `netns` (root, iproute2) for hosts with an address of their
own, 10.78.…; `process` elsewhere. Inside, 169.254.169.254 is the machine's metadata, and /tmp,
/var/tmp, /root, /home, /var/log, /var/lib/tradewind, /opt/tradewind, /run/tradewind, /etc/tradewind
and /dev/shm are its own; the rest is the computer's, Python and this checkout among it.
`cloud.console(id)` is what user-data wrote (/var/log/cloud-init-output.log).

**What bodies reach.** This computer is `cloud.host` for them and for itself (10.78.…1, or 127.0.0.1
without namespaces). The equipment listens there. A server of a test binds to `cloud.host` or stays
on 127.0.0.1 and is shown to them by `cloud.expose(port)`, which gives the URL.

**Where things are.** These know no cloud (test_core.py holds them to it):

    server.py     the process; running() for fixtures        control.py    the test's end
    door.py       one door: faults, pace, lost answers       controls.py   the equipment's end
    world.py      what is true; a machine's life             face.py       what a face supplies
    market.py     prices, zones over time                    bill.py       what it all costs
    quotas.py     what an account may have                   s3.py         books of an S3 server
    dials.py, clock.py
    bodies/       the interface; hosts.py what netns.py and processes.py share; init.py the first
                  process inside; metadata.py who it is; halt.py its shutdown; slots.py, forward.py
    faces/        ec2/ (moto, with what it lacks); google/ (by its discovery documents); rest/, one
                  for all clouds that are asked by JSON over HTTP, from a table for each:
                  lambda_cloud.py; kubernetes/, a cluster with a server, a scheduler and bodies
                  (pods) of its own, which shares the clock and the dials

Each file's docstring ends in its known lies. The largest: firewalls guard nothing, machines share
this computer's processors, and a machine that ended is known for ever.
"""
