"""The intermediate representation: nodes, traversal, verifier and printer."""
