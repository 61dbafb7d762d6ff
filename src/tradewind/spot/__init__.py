"""Cases of spot with a deadline: cut from measured series, simulated, and solved with foresight."""
