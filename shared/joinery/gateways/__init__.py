"""The world outside: a Protocol that a controller knows, and the adapter behind it."""
