"""EC2's face. Moto answers AWS's API (EC2, IAM, STS, SSM, …) on one address; this makes it refuse,
be late and forget as the real one does, by the world behind it (tests/cloud).

    from tests.cloud.faces.ec2.control import Control, running

    with running(tmp_path / "ec2", bodies="none") as cloud:
        subprocess.run(["tradewind", …], env={**os.environ, **cloud.env})   # boto3 finds it
        cloud.client("ec2")                                   # a boto3 client that never retries

A test can do more than with other faces: score, reservation, parameter, credentials, rebalance, and
the dials iam_lag_s and group_lag_s. Quotas have AWS's codes.

A bucket that bodies reach:

    with servers.s3(tmp_path) as s3:
        url = cloud.expose(int(s3["AWS_ENDPOINT_URL"].rpartition(":")[2]))
        cloud.credentials(s3["AWS_ACCESS_KEY_ID"], s3["AWS_SECRET_ACCESS_KEY"])  # of every role
        cloud.dials(body_env={"AWS_ENDPOINT_URL_S3": url, "TRADEWIND_PLAIN_HTTP": cloud.host})
        env = {**cloud.env, "AWS_ENDPOINT_URL_S3": url}   # for the test's own side

On that side S3 wants the bucket's keys and all else any: use the bucket's for both. obstore knows
no AWS_ENDPOINT_URL_S3, only AWS_ENDPOINT_URL; in bodies, which ask for nothing but S3, set both.

    face.py       tokens, dry runs, errors; moto's records   control.py    the test's end
    launches.py   RunInstances with limits                   controls.py   the equipment's end
    listings.py   late listings; what comes and goes         account.py    what EC2 alone has
    actions.py    what moto answers with 500                 spot.py       spot requests
    quotas.py     vCPU limits, Service Quotas                images.py     images, SSM parameters
    checks.py     what a launch is refused for               imds.py       the metadata, version 2
    times.py, userdata.py

The largest lies: nobody's rights are checked (IAM is written down and never asked), security groups
guard nothing, events go to nobody, and a machine that ended is listed for ever.
"""
