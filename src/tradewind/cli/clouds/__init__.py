"""Commands about where runs live: stores and accounts at clouds, and whether they are in order."""
