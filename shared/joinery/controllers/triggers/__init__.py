"""What wakes a door: a review of the API server, a bell, a message or a schedule; and how each is answered."""
