"""Stepping through the tokens of an expression, and saying what is wrong where a token does not fit.

The grammar itself is in `expression_parser`.
"""

from __future__ import annotations

from tidemark.compiler.graph.expression.result import ExpressionProblem
from tidemark.compiler.graph.expression.tokens import Kind, Token

QUERY_WORDS = ("SELECT", "WITH", "FROM", "TABLE", "VALUES", "INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "DROP")
CLAUSE_WORDS = ("OVER", "FILTER", "WITHIN", "USING", "IGNORE", "RESPECT", "COLLATE", "UNION", "EXCEPT", "INTERSECT")
OPERATOR_WORDS = (
    "AND",
    "OR",
    "NOT",
    "IN",
    "BETWEEN",
    "LIKE",
    "ILIKE",
    "RLIKE",
    "REGEXP",
    "IS",
    "DIV",
    "AS",
    "DISTINCT",
)
CASE_WORDS = ("CASE", "WHEN", "THEN", "ELSE", "END")
RESERVED = frozenset(("SELECT", "WITH", "FROM", *OPERATOR_WORDS, *CASE_WORDS))


class Cursor:
    def __init__(self, tokens: tuple[Token, ...]) -> None:
        self.tokens = tokens
        self.position = 0

    @property
    def current(self) -> Token:
        return self.tokens[self.position]

    def advance(self) -> Token:
        token = self.current
        self.position = min(self.position + 1, len(self.tokens) - 1)
        return token

    def accept(self, symbol: str) -> bool:
        return self.current.is_symbol(symbol) and bool(self.advance())

    def accept_word(self, word: str) -> bool:
        return self.current.is_word(word) and bool(self.advance())

    def expect(self, symbol: str) -> None:
        if not self.accept(symbol):
            raise self.unexpected(expected=symbol)

    def expect_word(self, word: str) -> None:
        if not self.accept_word(word):
            raise self.unexpected(expected=word)

    def name(self, what: str) -> str:
        token = self.advance()
        if token.kind not in (Kind.WORD, Kind.QUOTED):
            raise self.problem(f"expected {what}", token)
        return spelled(token)

    def problem(
        self,
        message: str,
        token: Token | None = None,
        *,
        hint: str | None = None,
        offset: int | None = None,
        code: str = "expression_syntax",
    ) -> ExpressionProblem:
        place = (token or self.current).start if offset is None else offset
        return ExpressionProblem(code, message, place, hint)

    def not_allowed(self, message: str, hint: str | None, token: Token | None = None) -> ExpressionProblem:
        return self.problem(message, token, hint=hint, code="expression_not_allowed")

    def unexpected(self, token: Token | None = None, *, expected: str | None = None) -> ExpressionProblem:
        token = token or self.current
        wanted = f", expected {expected}" if expected else ""
        if token.kind is Kind.END:
            return self.problem(f"the expression ends too early{wanted}", token)
        if token.is_symbol(";"):
            return self.not_allowed("one expression is allowed, without a semicolon", None, token)
        if token.is_symbol("$", "@", "?", ":", "{", "${", "{%"):
            return self.not_allowed(f"parameters ({token.text}) are not allowed", "write the value itself", token)
        if token.value in CLAUSE_WORDS and token.kind is Kind.WORD:
            return self.not_allowed(f"{token.value} is not allowed in an expression", None, token)
        if token.value in QUERY_WORDS and token.kind is Kind.WORD:
            return self.not_allowed(
                "a query is not allowed inside an expression", "use the columns of the input", token
            )
        hint = f"a column of that name is written `{token.text}`" if token.kind is Kind.WORD else None
        return self.problem(f"{token.text} is not expected here{wanted}", token, hint=hint)


def spelled(token: Token) -> str:
    """A name as the user wrote it, without its quotes."""
    return token.value if token.kind is Kind.QUOTED else token.text
