"""Messages keep their order and their numbers, and the memory they take has a limit."""

from __future__ import annotations

from tidemark.data_plane.report.outbox import Outbox
from tidemark.protocol.messages import ConsoleLine, EpochCommitted, Started


def started() -> Started:
    return Started(attempt=1, queries=("q",), recovered=False)


def epoch(number: int) -> EpochCommitted:
    return EpochCommitted(query="q", epoch=number, events=1, duration_ms=1, watermark=None, next_watermark=None)


def test_messages_wait_until_they_are_acknowledged() -> None:
    outbox = Outbox()
    for number in range(3):
        outbox.send(epoch(number))
    outbox.acknowledge(2)
    assert [(sent.seq, sent.message) for sent in outbox.waiting()] == [(3, epoch(2))]
    outbox.acknowledge(3)
    assert outbox.is_empty()


def test_an_old_acknowledgement_changes_nothing() -> None:
    outbox = Outbox()
    outbox.send(epoch(0))
    outbox.acknowledge(0)
    assert len(outbox.waiting()) == 1


def test_over_the_limit_the_oldest_goes_that_later_ones_make_up_for() -> None:
    outbox = Outbox(most=3)
    outbox.send(started())
    for number in range(4):
        outbox.send(epoch(number))
    outbox.send(ConsoleLine(sink="s", text="t"))
    assert [sent.seq for sent in outbox.waiting()] == [1, 5, 6]


def test_a_message_rings_the_bell_and_what_is_left_rings_it_again() -> None:
    outbox = Outbox()
    outbox.send(epoch(0))
    outbox.send(epoch(1))
    assert outbox.news.is_set()
    outbox.news.clear()
    outbox.acknowledge(1)
    assert outbox.news.is_set()
