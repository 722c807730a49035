"""`tack.explain`: which variant answers a call, and why each other one does not."""

from __future__ import annotations

from typing import Any

from tack import _core
from tack.model.record import Record
from tack.model.variant import Candidate

__all__ = ["Explanation", "explain"]


class Explanation(Record):
    """The record of one decision; `str` gives it as text.

    ``notes`` say what is true of the package as a whole, such as a bundle that cannot be read.
    """

    kernel: str
    signature: str
    candidates: tuple[Candidate, ...]
    notes: tuple[str, ...] = ()

    @property
    def chosen(self) -> Candidate | None:
        """The candidate that answers, or None."""
        return next((c for c in self.candidates if c.accepted), None)

    def __str__(self) -> str:
        chosen = self.chosen
        head = f"{self.kernel}({self.signature}): " + (
            f"answered by ({chosen.signature}) for {chosen.target}"
            if chosen
            else "no variant answers"
        )
        return "\n  ".join([head, *self.notes, *map(str, self.candidates)])

    def _repr_html_(self) -> str:
        """The record as a table, as notebooks show it."""
        import html

        head, *notes = str(self).splitlines()[: 1 + len(self.notes)]
        rows = "".join(
            f"<tr><td>{'taken' if c.accepted else 'refused'}</td>"
            f"<td>{html.escape(c.signature)}</td>"
            f"<td>{html.escape(c.target)}{', compiled at the call' if c.jit else ''}</td>"
            f"<td>{html.escape(c.reason)}</td></tr>"
            for c in self.candidates
        )
        titles = "".join(f"<th>{t}</th>" for t in ("", "signature", "target", "reason"))
        said = "".join(f"<p>{html.escape(line.strip())}</p>" for line in (head, *notes))
        return f"{said}<table><tr>{titles}</tr>{rows}</table>"


def explain(kernel: _core.Kernel, *args: Any, **kwargs: Any) -> Explanation:
    """Lists every variant of ``kernel`` with why it was taken or refused for these arguments.

    Compiles and runs nothing. Raises what the call would for arguments that no variant could take.
    """
    import inspect

    from tack.runtime.dispatch import decide

    if not isinstance(kernel, _core.Kernel):
        raise TypeError(f"tack.explain takes a kernel, not a {type(kernel).__name__}")
    try:
        bound = inspect.signature(kernel.py_func).bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{kernel.definition.name}: {error}") from None
    bound.apply_defaults()
    return decide(kernel.definition, tuple(bound.arguments.values()))
