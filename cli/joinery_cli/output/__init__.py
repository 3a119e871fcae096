"""How plans and decisions are printed: as tables, as JSON, and what a terminal must not be given."""
