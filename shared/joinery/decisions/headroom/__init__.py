"""Room that is kept free for pods that are still to come: CapacityBuffers."""
