"""CreateFleet: what is asked, and what came of it."""
