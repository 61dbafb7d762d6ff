"""A Kubernetes cluster with bodies, for tests: API server, scheduler, controllers and kubelets, and
pods that are processes of this computer. It is a process of its own, and several may run at once.

    from tests.cloud.faces.kubernetes.server import running

    with running(tmp_path / "cluster", bodies="none") as cluster:   # or process, namespace, auto
        cluster.namespace("team")
        cluster.kubeconfig(namespace="team")       # a file: the administrator's
        token = cluster.token("ann")               # a user, who may do what bindings say
        cluster.kubeconfig(token, namespace="team", context="anns")
        cluster.make("/apis/batch/v1/namespaces/team/jobs", {...})
        cluster.vanish("gpu-0")

By hand: `python -m tests.cloud.faces.kubernetes --state DIR` prints a kubeconfig's path.

It has three nodes (`nodes=False`: none): cpu-0, and gpu-0 and gpu-1 (spot) with eight GPUs each.

**What a test can do** is in control.py. To nodes: add, fill, vanish, silent, restore, notice,
cordon, drain, taint, label. To pods: evict (by the API, or by their node), oom, finish (without
bodies). To queues: queue, evict_workload. To the server: fail and lose (actions are `create jobs`,
`list pods`, `get pods/log`), restart, compact, expire, advance, hold. Dials (cluster.ClusterDials):
what is installed (jobset, kueue, volcano, karpenter), and times, which are shorter than Kubernetes'
own. To look at: objects, names, left, reasons (of events), calls, pids, claim.

**Bodies.** `none`: pods run at once, without processes, until a test lets them `finish`, or they
are deleted; volumes and variables must be there all the same. `namespace` (root, overlayfs): each
container has a root that is a copy-on-write view of this computer's files, its volumes where they
belong, its own users, and names of pods and headless services in /etc/hosts. `process`: plain
processes, their volumes below $POD_ROOT, and no names. `auto`: the better of these that is
possible.

    server.py    the door, the process, running()   api.py        who, may, does; verbs
    requests.py  paths and queries                  registry.py   make, change, delete
    listing.py   pages and watches                  selectors.py, patches.py
    schemas.py   the published schemas              extensions.py those of JobSet, Kueue, Volcano
    checks*.py   what schemas do not say            defaults.py, admission.py, security.py
    rbac.py      roles and bindings                 tokens.py, reviews.py, discovery.py
    manager.py   the controllers' thread            store.py, cluster.py, resources.py
    jobs.py, jobpods.py, jobsets.py, kueue.py       collector.py  owners, namespaces, quotas
    scheduler.py, placement.py, budgets.py          nodelife.py   silence, taints, lost pods
    kubelet.py, podstatus.py, volumes.py            runtimes.py, processes.py, container.py
    control.py   the test's end                     controls.py   the equipment's

**Known lies**; each file tells its own. The largest: images are never pulled, and are all this
computer; the network is this computer's (a server on all addresses is everybody's), and network
policies guard nothing; limits of memory and CPU are booked, not enforced; unknown fields are always
refused; there is no exec, attach, port-forward, no followed log, no OpenAPI document, no conversion
between versions of Kueue's kinds but their names; nothing is kept when the process ends, and a
restart is of the API server's door alone.
"""
