"""The operators a definition can name. The one list to extend beside an operator's own file."""

from __future__ import annotations

from tidemark.compiler.graph.operators.aggregate import AGGREGATE
from tidemark.compiler.graph.operators.branch import BRANCH
from tidemark.compiler.graph.operators.dedup import DEDUP
from tidemark.compiler.graph.operators.filter import FILTER
from tidemark.compiler.graph.operators.flat_map import FLAT_MAP
from tidemark.compiler.graph.operators.map import MAP
from tidemark.compiler.graph.operators.operator import OperatorType
from tidemark.compiler.graph.operators.union import UNION
from tidemark.compiler.graph.operators.window import WINDOW

OPERATORS: tuple[OperatorType, ...] = (FILTER, MAP, FLAT_MAP, BRANCH, UNION, DEDUP, WINDOW, AGGREGATE)
OPERATORS_TO_COME = ("table", "top_k", "join", "lookup", "temporal_join", "process", "sql")
OPERATORS_BY_NAME = {operator.name: operator for operator in OPERATORS}
