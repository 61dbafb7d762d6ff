"""`tradewind bench`: the measured claims."""
