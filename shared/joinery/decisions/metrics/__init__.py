"""What decisions and snapshots say in figures: pure functions that return ``Measurement``s."""
