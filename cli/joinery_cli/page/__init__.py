"""A plan as one page of HTML."""
