"""Training scripts as people write them, each in the style of a public one.

They are made resumable as the README says, or wrongly. `main` trains; tests/torch/test_scripts.py
kills and resumes each, and says what comes of it: the same to the bit, or which words are said.
"""
