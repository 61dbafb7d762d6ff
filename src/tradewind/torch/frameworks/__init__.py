"""The same training under a framework that runs the loop itself: one line makes it resumable."""
