"""Whether a script resumes to the bit: tried, by killing it."""
