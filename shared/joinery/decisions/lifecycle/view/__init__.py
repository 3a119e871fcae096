"""What lifecycle and its neighbours see of a cluster: the objects and instances joined, and what follows from them."""
