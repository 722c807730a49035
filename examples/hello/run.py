"""Calls the kernel and shows which prebuilt variant answered."""

import hello
import numpy as np

import tack

x = np.arange(5, dtype=np.float32)
y = np.ones(5, dtype=np.float32)
out = np.empty_like(x)

hello.saxpy(2.0, x, y, out)
print(out)
print(tack.explain(hello.saxpy, 2.0, x, y, out))
