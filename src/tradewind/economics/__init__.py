"""The economics of a team: own, commit, place, carbon and when to run. Figures with their sources
lie in `data/`, one file a table; decisions are functions of values."""
