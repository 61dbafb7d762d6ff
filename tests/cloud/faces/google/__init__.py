"""Google Cloud's face: Compute Engine, TPU VMs, Cloud Storage, IAM and their like, each request
checked against Google's own discovery documents; machines with bodies behind it (tests/cloud).

    from tests.cloud.faces.google.control import Control, running

    with running(tmp_path / "google", bodies="none") as cloud:       # or process, netns, auto
        cloud.bucket("runs")                                         # gs://runs, in us-central1
        cloud.dials(body_env=cloud.body_env)                         # what runs in bodies finds it
        subprocess.run(["tradewind", …], env={**os.environ, **cloud.env})
        cloud.client("compute")            # Google's own client, as the project's owner

`cloud.env` has gcloud's variables for endpoints, that of Cloud Storage among them, and the key of
the project's owner (GOOGLE_APPLICATION_CREDENTIALS), whose token_uri leads here.
`cloud.key_file(email)` is a key of anybody else, who may do what `cloud.grant(role,
"serviceAccount:EMAIL")` or a policy says. In a body the metadata server tells who it is.

A machine is named to `cloud.interrupt` and the like by its number, its name, or anything that ends
in `/NAME`; the worker of a slice is `NODE-w-0`. Its type in prices, capacity and bill is as in the
catalog: `n1-standard-8+1xT4`, `tpu-v5litepod-16` (a slice: capacity counts slices, and each worker
has its part of the price); markets are spot, on-demand and flex-start. `KIND@flex-start` may have a
price of its own. Faults are set by method: `cloud.fail("compute.instances.insert",
"rateLimitExceeded")`, and `cloud.fail_late(method, "ZONE_RESOURCE_POOL_EXHAUSTED")` for operations
that are accepted and fail. Quotas have Google's names (places.QUOTAS, tputypes.LIMITS).

Dials besides the usual: operation_s, queue_s, iam_lag_s, bulk_says_why, tpu_by_zone,
storage_fails_every, object_pace_s, enable_s (state.py). To look at: permissions, operations, shelf,
accounts, roles, policy, buckets, objects (control.py).

    face.py        requests: who, may, does            discovery.py  what requests there are
    identity.py    keys, tokens, signatures            policies.py   roles, bindings, conditions
    needs.py       method → permissions                problems.py   errors in Google's form
    orders.py      what an instance may be             instances.py  their life
    operations.py  get, wait, list                     listing.py    filters and pages
    shelves.py     networks, images, types, quotas     places.py     zones, types, GPUs
    quotainfos.py  Cloud Quotas                        consumed.py   quotas of TPUs
    fabric.py      network profiles, cards             disks.py      kinds of disks
    tpu.py         slices, queued resources            tputypes.py   chips, hosts, runtimes
    metadata.py    the server; trees.py what it tells  storage.py    gate and books of the bucket
    admin.py       IAM, projects, services, secrets    state.py      what exists; dials
    control.py     the test's end                      controls.py   the equipment's

The largest lies: nothing of this was ever held against Google itself, only against its documents
and what people have published of its answers; a machine costs from RUNNING until the operation that
ended it is done; every type is offered in every zone; firewalls guard nothing; regions of a bucket
are one for the whole bill (the last that was made). Each file tells its own.
"""
