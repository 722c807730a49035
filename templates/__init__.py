"""Jinja templates of generated source, and the C header of the ABI."""
