"""The items of a test in rounds."""

from __future__ import annotations

from typing import Any

from tidemark.compiler.definition.case import CaseDefinition
from tidemark.testing.script import Round, rounds_of

A, B, C = {"id": "a"}, {"id": "b"}, {"id": "c"}


def rounds(**sources: list[dict[str, Any]]) -> list[Round]:
    return rounds_of(CaseDefinition(name="case", input=sources, expect={}))


def test_no_items() -> None:
    assert rounds() == []
    assert rounds(orders=[]) == []


def test_events_alone_are_one_round() -> None:
    assert rounds(orders=[A, B]) == [Round({"orders": [A, B]})]


def test_every_control_item_ends_a_round() -> None:
    moved = {"advance_watermark": "2026-01-01T00:00:00Z"}
    items: list[dict[str, Any]] = [A, {"epoch": True}, B, moved, {"advance_time": "2m"}, C]
    assert rounds(orders=items) == [
        Round({"orders": [A]}),
        Round({"orders": [B]}, watermarks={"orders": "2026-01-01T00:00:00Z"}),
        Round({"orders": []}, idle_ms=120_000),
        Round({"orders": [C]}),
    ]


def test_the_parts_of_several_sources_meet_by_number() -> None:
    made = rounds(
        orders=[A, {"advance_time": "1s"}, B, {"crash": True}],
        users=[C, {"advance_time": "3s"}],
    )
    assert made == [Round({"orders": [A], "users": [C]}, idle_ms=3000), Round({"orders": [B]}, crash=True)]


def test_a_crash_wanted_by_two_sources_is_one() -> None:
    assert rounds(a=[{"crash": True}], b=[{"crash": True}]) == [Round({"a": [], "b": []}, crash=True)]


def test_a_mapping_with_more_than_a_control_is_an_event() -> None:
    event = {"crash": True, "id": "a"}
    assert rounds(orders=[event]) == [Round({"orders": [event]})]
