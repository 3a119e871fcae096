"""The cheapest nodes for given pods, as numbers: no Kubernetes here, only rooms, prices, counts and caps."""
