"""EC2 with bodies: an AWS for tests, whose machines are real hosts on this computer.

Moto answers AWS's API (EC2, IAM, STS, SSM, …) on one address; this package makes it as scarce, as
late and as forgetful as the real one, gives every machine a body that runs its user-data, and keeps
a bill. It is a process of its own, and several may run at once.

    from tests.ec2.server import running

    @pytest.fixture
    def cloud(tmp_path: Path) -> Iterator[Control]:
        with running(tmp_path / "ec2", bodies="none") as cloud:   # or process, netns, auto
            yield cloud

    subprocess.run(["tradewind", …], env={**os.environ, **cloud.env})   # boto3 finds it
    cloud.client("ec2")                                       # a boto3 client that never retries

By hand: `python -m tests.ec2 --port 0 --state DIR`; DIR/url tells where it is.

**What a test can do** is in control.py: capacity, quota, fail, lose, dials (lag_s, iam_lag_s,
pending_s, shutting_down_s, speed, body_env), prices, score, trace, interrupt, rebalance, crash,
advance (its clock), credentials; and look at: bill, left, everything, calls, alive, console, state,
wait.

**Bodies.** `none` for tests of the API; `netns` (root, iproute2) for hosts with an address of their
own, 10.77.…, which the API tells as PrivateIpAddress; `process` elsewhere. Inside, 169.254.169.254
is the machine's metadata, and /tmp, /var/tmp, /root, /home, /var/log, /var/lib/tradewind,
/opt/tradewind, /run/tradewind, /etc/tradewind and /dev/shm are its own; the rest is the computer's,
Python and this checkout among it. `cloud.console(id)` is what user-data wrote
(/var/log/cloud-init-output.log).

**What bodies reach.** This computer is `cloud.host` for them and for itself (10.77.…1, or 127.0.0.1
without namespaces). The equipment listens there. A server of a test binds to `cloud.host` or stays
on 127.0.0.1 and is shown to them by `cloud.expose(port)`, which gives the URL. A bucket, then:

    with servers.s3(tmp_path) as s3:
        url = cloud.expose(int(s3["AWS_ENDPOINT_URL"].rpartition(":")[2]))
        cloud.credentials(s3["AWS_ACCESS_KEY_ID"], s3["AWS_SECRET_ACCESS_KEY"])  # of every role
        cloud.dials(body_env={"AWS_ENDPOINT_URL_S3": url, "TRADEWIND_PLAIN_HTTP": cloud.host})
        env = {**cloud.env, "AWS_ENDPOINT_URL_S3": url}   # for the test's own side

On that side S3 wants the bucket's keys and all else any: use the bucket's for both. obstore knows
no AWS_ENDPOINT_URL_S3, only AWS_ENDPOINT_URL; in bodies, which ask for nothing but S3, set both.

**Where things are.**

    server.py     the process; running() for fixtures         control.py    the test's end
    front.py      one door: tokens, faults, lost answers      controls.py   the equipment's end
    launches.py   RunInstances with limits                    listings.py   late listings; the books
    actions.py    what moto answers with 500                  spot.py       spot requests
    quotas.py     vCPU limits, Service Quotas                 images.py     images, SSM parameters
    market.py     prices, zones over time                     bill.py       what it all costs
    world.py      what is true; a machine's life              dials.py, clock.py
    bodies.py     the interface; hosts.py what netns.py and processes.py share; init.py the first
                  process inside; imds.py its metadata; halt.py its shutdown; slots.py, forward.py

Each file's docstring ends in its known lies. The largest: nobody's rights are checked (IAM is
written down and never asked), security groups guard nothing, events go to nobody, machines share
this computer's processors, and a machine that ended is listed for ever.
"""
