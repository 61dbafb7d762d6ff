"""Our process on each machine: fetches the job, starts it, watches it, reports."""
