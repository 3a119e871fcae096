"""The gateway to the queues that wake doors."""
