"""Who rents machines out. base.py has the one interface; none imports another."""
