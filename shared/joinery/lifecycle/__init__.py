"""A claim's life, from the plan that wants it to the instance that is gone: pure decisions over one view of the world."""
