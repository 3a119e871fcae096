"""What ``make build`` makes: layers and functions as Lambda takes them. ``tools.build`` is the order of it all."""
