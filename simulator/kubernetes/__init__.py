"""The in-memory cluster: what an API server and its controllers do to objects, and its HTTP."""
