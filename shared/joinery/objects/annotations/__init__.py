"""What objects remember for us: our annotations and conditions, read and written."""
