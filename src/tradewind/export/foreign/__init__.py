"""Files of others, read into workload files: a module each, `read(text) -> Found`, pure.

What has no place in a workload file is not guessed at: it is named in `Found.left`.
"""
