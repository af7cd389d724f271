"""The order in which operators can be built and sinks commit, and the cycles that have none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidemark.compiler.graph.node import SinkNode


def topological(reads: Mapping[str, Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """Ids after everything they read, those nearest to the sources first; and the cycles found.

    What stands in a cycle, or reads from one, is left out of the order.
    """
    order: list[str] = []
    placed: set[str] = set()
    waiting = dict.fromkeys(reads)
    while ready := [id_ for id_ in waiting if all(read in placed or read not in reads for read in reads[id_])]:
        for id_ in ready:
            del waiting[id_]
            placed.add(id_)
            order.append(id_)
    return order, _cycles({id_: [read for read in reads[id_] if read in waiting] for id_ in waiting})


def in_commit_order(sinks: Mapping[str, SinkNode], written: Sequence[str]) -> dict[str, SinkNode]:
    """As written; but the sinks of refused rows after those whose rows they are."""

    def depth(sink: SinkNode) -> int:
        origin = sinks.get(sink.stream.side.node) if sink.stream.side else None
        return 0 if origin is None else 1 + depth(origin)

    return {id_: sinks[id_] for id_ in sorted(filter(sinks.__contains__, written), key=lambda id_: depth(sinks[id_]))}


def _cycles(reads: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """One cycle for each group of ids that hang together; every id given reads at least one of the others."""
    cycles: list[list[str]] = []
    known: set[str] = set()
    for start in reads:
        path: list[str] = []
        current = start
        while current not in known:
            known.add(current)
            path.append(current)
            current = reads[current][0]
        if current in path:
            cycles.append(path[path.index(current) :][::-1])
    return cycles
