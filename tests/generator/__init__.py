"""Generates kernels as source text, free of races and in bounds, for the differential tests.

program      a program's text and its arguments
scope        what code can name at a point
expressions  expressions of a family of types
operations   their operators, builtins and casts
statements   control flow, assignments, stores
functions    device functions
objects      objects of device classes, and their classes
vectors      vectors and matrices
kernels      the whole program: `draw()` gives one from a seed
pairs        which constructs occurred inside which
module       importing a program's text
series       many programs from one seed
reduce       a smaller program that is still wrong
"""

from .kernels import draw
from .module import load_module
from .program import Program
from .series import collect

__all__ = ["Program", "collect", "draw", "load_module"]
