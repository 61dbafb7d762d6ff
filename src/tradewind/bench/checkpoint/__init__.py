"""What a checkpoint costs training: PyTorch's ways and ours, in one run on one machine.

Needs nothing but torch, and runs from a checkout without installing anything:

    PYTHONPATH=src python3 -m tradewind.bench.checkpoint --device cuda --dir /scratch
"""
