"""The oracle: a kernel's plain Python function under a scalar shim that is not the code under test.

`run(kernel, arguments)` executes `kernel.py_func` with the language page's types, built from Python
integers, fractions and NumPy scalars. Nothing here imports tack.

    types     dtypes, weak literals, promotion (and the choices made where the page is silent)
    numbers   exact arithmetic on payloads
    counters  random numbers of a seed and a counter
    rules     what type each operation gives
    values    the scalars that a kernel meets, with operators
    templates objects of a device class
    vectors   vectors and matrices of such scalars
    arrays    NumPy arrays that load and store such scalars
    source    functions' syntax trees, and what names stand for
    flow      what a function assigns and declares, and what can be reached
    analysis  static types of locals
    rewrite   a copy of the function that converts to them
    run       the loop over iterations
"""

from .arrays import OutOfBounds
from .run import check, run, signature
from .types import OracleRefused

__all__ = ["OracleRefused", "OutOfBounds", "check", "run", "signature"]
