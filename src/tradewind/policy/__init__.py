"""Which market and zone to hold, given progress, deadline and history; and what to expect of
them. Pure."""
