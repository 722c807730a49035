"""The front end: Python source to IR.

`definition` holds what a decorator captured, `source` finds its text, `bindings` resolves static
names, `fingerprint` digests all that a kernel reaches, and the ``lower_*`` modules translate.
"""
