"""A real Slurm on this computer: slurmctld, slurmdbd with a MariaDB, munge, and four slurmd, all of
this folder's own and on loopback. The programs are Debian's; nothing of /etc is used.

Known lies: the nodes are one computer, so they share its processes, its /tmp and its network; their
GPUs are nodes of devices that do nothing; processes are tracked by linuxproc, which signals all
processes of a step, where proctrack/cgroup signals a task and not its children; memory is not
enforced. Jobs are root's.
"""
