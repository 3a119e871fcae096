"""Why pods have no node: reasons as data, from the rules and limits that left none. Pure."""
