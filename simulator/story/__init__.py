"""A scenario, run and shown: timeline, bill, leaks; and the commands that show it."""
