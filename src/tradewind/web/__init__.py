"""Pages that open offline in a browser: everything a plan says, to look at and to send on."""
