"""A server under load: what `tradewind measure` and `tradewind load` ask, time and write down.

`server` speaks to any OpenAI-compatible server and times its streams, `prompts` makes prompts of a
wanted length, `arrivals` says when they are due, `loads` sends them (so many clients, or an open
loop). `figures` and `goodput` are pure: what a load has shown, its row in the schema of
docs/serving-estimate.md, and how much of it was as good as it should be.
"""
