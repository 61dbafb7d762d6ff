"""The lengths of time that controllers and supervisors must agree on, in seconds.

All are measured by one observer on its own clock. What keeps a replaced leg from working on is that
LOST_S is longer than FENCE_S by more than a beat, however the two clocks run (up to a tenth apart):
a machine that was silent for LOST_S has long stopped by itself.
"""

BEAT_S = 30
"""A supervisor reports and reads its orders at least this often; the rest is reckoned with it."""
EACH_S = 5
"""And this often, as long as the store answers: whoever says stop does not want to wait."""
FENCE_S = 120
"""A supervisor that could not reach the store for so long stops its job."""
LOST_S = 200
"""A leg one of whose machines has not changed its heartbeat for so long is given up."""
UNREACHABLE_S = 300
"""A machine that could not reach the store for so long shuts itself down: its job has stopped."""
DRAIN_S = 240
"""What saving may take when a leg is to end."""
GRACE_S = 300
"""A machine that no live leg claims is terminated after so long."""
UNATTENDED_S = 900
"""What the budget's reserve allows for while no controller is at work: until a machine reports,
only a controller can end it."""
SHUTDOWN_S = 60
"""From a machine's decision to shut itself down until it is off."""
PASS_ENDS_S = DRAIN_S + FENCE_S + 60
"""With less than this left of its pass to the store a machine saves and stops: it must be able to
write until the end, and to say so."""

assert LOST_S * 0.9 > FENCE_S * 1.1 + BEAT_S
