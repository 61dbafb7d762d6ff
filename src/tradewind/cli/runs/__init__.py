"""Commands about runs: start, watch, look at, stop, pay."""
