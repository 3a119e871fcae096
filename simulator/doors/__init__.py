"""The real handlers, opened as Lambda opens them, and the queues before them."""
