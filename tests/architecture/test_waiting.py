"""The helper that other tests wait with."""

from __future__ import annotations

import pytest
from support.waiting import wait_until


def test_gives_the_first_true_value() -> None:
    values = iter([0, None, "ready", "later"])
    assert wait_until(lambda: next(values), deadline=5, interval=0) == "ready"


def test_asks_at_least_once_and_says_what_it_last_saw() -> None:
    with pytest.raises(TimeoutError, match=r"still \[\] after 0 s"):
        wait_until(list, deadline=0)
