"""AWS over HTTP, by moto and what moto lacks."""
