"""Benchmarks: what the product costs, how near its bounds it is, and how long it takes."""
