"""A leg's machines, at Compute Engine.

order.py         a purchase, as Compute Engine is asked for it; types.py: what a machine type needs
reservations.py  of what the user owns already
placement.py     policies by which machines stand close together
listing.py       instances as our machines; ends.py: when those ended that are gone
"""
