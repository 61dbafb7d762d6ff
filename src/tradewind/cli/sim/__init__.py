"""`tradewind sim`: runs and spot traces, simulated."""
