"""How each backend loads and launches; what exists so far is the CPU."""
