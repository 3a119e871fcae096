"""What an API server takes, and whoever wrote the files may not have meant: said beside a plan, as notices."""
