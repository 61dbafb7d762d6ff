"""Runs for whoever wants them carried out: from Python, and below every command.

handle.py   Run, run, runs: what `tradewind.run` and `tradewind.runs` are
submit.py   from a workload or a plan to a run that is recorded
follow.py   a run as it stands, looked after here or in the background
orders.py   stop, resume, interrupt
logs.py     what a job has printed
reporting.py  what a report of a run is made of
legs.py     the legs of a run
clouds.py   what is set up at clouds for a store
setup.py    setting one up, and undoing that
rented.py   a plan carried out on machines of clouds
luggage.py  what machines of a cloud take along
wishes.py   how machines of this computer are to be interrupted
attended.py  clouds whose machines only a controller ends
owned.py    which runs may use this computer: those submitted from it
handed.py   secrets of local runs, kept in this home alone
shell.py    a shell on one of a run's machines
services.py  Service, serve, services: what `tradewind.serve` is
served.py   from a workload to a service that is recorded
keeping.py  which services this home keeps
fronts.py   HAProxy before the replicas of services that were submitted here
billed.py   what a service has cost
fleet.py    which providers there are, and the loop over them

Nothing is imported here: each command takes what it needs.
"""
