"""The catalogue: what a region sells, where and for how much."""
