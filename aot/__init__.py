"""Build time: from a manifest to the bundle in a wheel.

``manifest`` -> ``rows`` -> ``enumerate`` -> ``plan`` -> ``emit`` -> (CMake compiles) ->
``bundle``. Nothing here runs at a call, and importing this package imports none of it.
"""

__all__: list[str] = []
