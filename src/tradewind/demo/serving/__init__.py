"""What `tradewind demo serve` serves: engine.py is sent to its replicas."""
