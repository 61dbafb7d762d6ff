"""Whole runs under a fake clock, with everything going wrong that can. One seed reproduces all."""
