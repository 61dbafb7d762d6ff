"""Will it fit, and how fast will it go: from a model, a layout and hardware to memory and time.

Counting is pure (`shapes`); where a shape comes from is the rim: `registry` knows models by name,
`huggingface` reads their configuration files. Nothing here needs numpy or torch to be imported.
"""
