"""A scenario, run and told: timeline, bill, leaks; and the commands that show it."""
