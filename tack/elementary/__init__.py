"""Elementary functions - exp, log, sin and their kind - as arithmetic on floats and their bits.

Each is written once, over `Term`: a short program of additions, multiplications, shifts and
selections, for f32 in f32 and for f64 in f64, without tables or fused operations, and without
branches but around what is costly and seldom needed. The compiler makes IR of it
(``tack.passes.transcendental``), so that every target computes the same bits; `evaluate` runs it on
NumPy's numbers, which is what ``tack.exp(x)`` is in plain Python.

``functions`` is the table of them all; a module holds one family. ``precise`` has numbers of twice
the precision. How accurate each is, is measured by ``tests/accuracy.py`` and told in the docs.
"""
