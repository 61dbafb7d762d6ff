"""The first ten minutes: a real training, and all that can happen to it, on this computer.

- jobs: what is trained, and where it lies
- alone: the same training without any interruption, to compare with
- world: prices from the catalog, and when spot machines are there
- rehearsal: the run in that world, its controller, and what is done to both

Prices and interruptions are simulated; everything else is what a run in a cloud consists of.
"""
