"""Will it serve: memory, throughput and latency of inference on a model, a layout and an engine.

`memory` and `passes` are formulas over columns (`cases`), `modes` turns them into what a client
sees, `constants` holds what is fitted; `rows` reads published measurements, `answer` answers one
question. Nothing here needs numpy to be imported.
"""
