"""``joinery uninstall``: the way out, step by step, each of which may be repeated."""
