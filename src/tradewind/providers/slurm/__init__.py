"""Slurm clusters of one's own: a leg is one batch job. No library is needed: Slurm's own commands
are run on a login node, here or over the user's own OpenSSH.

login.py      runs commands on a login node, and says what came of each
parsing.py    what Slurm's commands print, as values
troubles.py   Slurm's states, reasons and errors, and what each means to us
names.py      the name of a leg's job, by which it is known again
jobs.py       which jobs there are, and which are over: squeue and sacct must agree
cluster.py    partitions, nodes, QOS and limits
shapes.py     the kinds of machines that follow from them, and what they cost
script.py     what sbatch is asked for, and what runs on the nodes
containers.py images: pyxis, Apptainer
facts.py      how jobs of Slurm behave
shell.py      `tradewind ssh`: a step beside the job's own
provider.py   launch, list, withdraw, terminate
usable.py     what can be had of a plan's ways
footprint.py  what `tradewind setup slurm` has written down
wish.py       what it is asked for, checked
setup.py      `tradewind setup slurm` and `teardown`
checks.py     `tradewind doctor slurm`
aboard.py     on a node: SIGTERM as a notice
who.py        on a node: which rank this is
"""
