"""Files and documents become the snapshot that a plan is made from; what no API server would take is refused."""
