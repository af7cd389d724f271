"""Hints that name what exists, the nearest first."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

SHOWN = 20


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """The choice the user probably meant; spelling it in another case counts as near."""
    known = list(choices)
    folded = {choice.lower(): choice for choice in known}
    if name.lower() in folded:
        return folded[name.lower()]
    found = get_close_matches(name, known, n=1, cutoff=0.6)
    return found[0] if found else None


def hint_for(name: str, choices: Iterable[str], *, what: str) -> str:
    """`Did you mean `amount`? The columns are amount, store.`"""
    known = list(choices)
    near = nearest(name, known)
    return (f"Did you mean `{near}`? " if near else "") + listed(known, what=what)


def listed(choices: Iterable[str], *, what: str) -> str:
    known = list(choices)
    if not known:
        return f"There are no {what}."
    rest = len(known) - SHOWN
    return f"The {what} are {', '.join(known[:SHOWN])}{f' and {rest} more' if rest > 0 else ''}."
