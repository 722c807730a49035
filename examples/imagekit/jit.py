"""Calls a kernel of imagekit with a signature that nobody prebuilt.

The first process compiles it, the second finds what the first compiled; ``--expect`` says which of
the two this one should be. What tack logs is printed as it comes.
"""

import argparse
import logging
import sys
import time

import numpy as np
from imagekit import kernels

import tack

STORIES = {"compiled": "compiled now", "cached": "found in the disk cache"}


def main() -> int:
    """Calls, checks the result against NumPy, and says how it was answered."""
    parser = argparse.ArgumentParser(description="a call that no prebuilt variant answers")
    parser.add_argument("--expect", choices=STORIES, help="fail if it was answered otherwise")
    options = parser.parse_args()

    story: list[str] = []

    class Story(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            story.append(record.getMessage())
            print(f"  tack: {story[-1]}")

    log = logging.getLogger("tack")
    log.addHandler(Story())
    log.setLevel(logging.DEBUG)

    image = np.linspace(0, 1, 100_000)
    target = np.zeros_like(image)
    print(tack.explain(kernels.tone, image, target))
    start = time.perf_counter()
    kernels.tone(image, target)
    first = time.perf_counter() - start
    start = time.perf_counter()
    kernels.tone(image, target)
    print(f"first call {first * 1e3:.1f} ms, next {(time.perf_counter() - start) * 1e3:.2f} ms")

    np.testing.assert_array_equal(target, np.sqrt(image))
    if options.expect and not any(STORIES[options.expect] in line for line in story):
        print(f"WRONG: it was not {STORIES[options.expect]}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
