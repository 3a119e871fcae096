"""What is to be done: pure functions of objects. No I/O, clock, environment or randomness."""
