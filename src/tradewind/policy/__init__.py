"""Which market and zone to hold next, given progress, deadline and history. Pure."""
