"""From text to tree, with Spark's precedence. One pass, no backtracking, bounded depth.

The grammar is Spark's for scalar expressions, written out: sqlglot's own parser binds `a | b & c` and `a || b + c`
in another way than Spark, lets `x between 1 2` pass, and takes exponential time for `struct(struct(struct(…`.
Whatever has no rule here is refused with its position.
"""

from __future__ import annotations

from collections.abc import Callable

from tidemark.compiler.graph.expression import literals as literals
from tidemark.compiler.graph.expression.cursor import RESERVED, Cursor, spelled
from tidemark.compiler.graph.expression.tokens import Kind, Token, tokenize
from tidemark.compiler.graph.expression.tree import (
    Aliased,
    Between,
    Binary,
    Call,
    Case,
    Cast,
    Extract,
    Field,
    In,
    Is,
    Lambda,
    Literal,
    Logical,
    Match,
    Name,
    Node,
    Subscript,
    Unary,
)
from tidemark.schema import BOOLEAN, NULL, Type, TypeSyntaxError, parse_type

MAX_NESTING = 32
BINARY_OPERATORS: tuple[tuple[str, ...], ...] = (
    ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>"),
    ("|",),
    ("^",),
    ("&",),
    ("+", "-", "||"),
    ("*", "/", "%", "DIV"),
)
LEVELS = {operator: level for level, operators in enumerate(BINARY_OPERATORS) for operator in operators}
SYNONYMS = {"==": "=", "<>": "!="}
SPARK_TYPE_WORDS = {"bigint": "long", "integer": "int", "real": "float", "numeric": "decimal", "dec": "decimal"}


def parse(text: str) -> Node:
    """The tree of one expression; raises ExpressionProblem."""
    parser = _Parser(tokenize(text))
    tree = parser.expression()
    if parser.current.kind is not Kind.END:
        raise parser.unexpected()
    return tree


class _Parser(Cursor):
    def __init__(self, tokens: tuple[Token, ...]) -> None:
        super().__init__(tokens)
        self.nesting = 0

    # Conditions

    def expression(self) -> Node:
        return self.nested(lambda: self.logical("OR", lambda: self.logical("AND", self.negation)))

    def nested(self, read: Callable[[], Node]) -> Node:
        if self.nesting == MAX_NESTING:
            raise self.problem(
                f"the expression is nested more than {MAX_NESTING} levels deep", code="expression_too_deep"
            )
        self.nesting += 1
        node = read()
        self.nesting -= 1
        return node

    def logical(self, word: str, operand: Callable[[], Node]) -> Node:
        offset, operands = self.current.start, [operand()]
        while self.accept_word(word):
            operands.append(operand())
        return operands[0] if len(operands) == 1 else Logical(offset, word, tuple(operands))

    def negation(self) -> Node:
        token = self.current
        if self.accept_word("NOT") or self.accept("!"):
            return Unary(token.start, "NOT", self.nested(self.negation))
        return self.predicate(self.binary(0))

    def predicate(self, operand: Node) -> Node:
        token = self.current
        if self.accept_word("IS"):
            return self.is_predicate(operand, token.start)
        negated = self.accept_word("NOT")
        found = self.range_predicate(operand)
        if found is None:
            if negated:
                raise self.unexpected()
            return operand
        return Unary(token.start, "NOT", found) if negated else found

    def is_predicate(self, operand: Node, offset: int) -> Node:
        negated = self.accept_word("NOT")
        found: Node
        if self.accept_word("DISTINCT"):
            self.expect_word("FROM")
            found, negated = Binary(offset, "<=>", operand, self.binary(0)), not negated
        elif self.current.is_word("NULL", "TRUE", "FALSE"):
            found = Is(offset, operand, self.advance().value)
        else:
            raise self.problem("IS is followed by NULL, TRUE, FALSE or DISTINCT FROM")
        return Unary(offset, "NOT", found) if negated else found

    def range_predicate(self, operand: Node) -> Node | None:
        offset = self.current.start
        if self.accept_word("BETWEEN"):
            low = self.binary(0)
            self.expect_word("AND")
            return Between(offset, operand, low, self.binary(0))
        if self.accept_word("IN"):
            self.expect("(")
            return In(offset, operand, self.listed(self.expression))
        if self.current.is_word("LIKE", "ILIKE", "RLIKE", "REGEXP"):
            return self.match(operand)
        return None

    def match(self, operand: Node) -> Node:
        token = self.advance()
        if self.current.is_word("ANY", "ALL", "SOME"):
            raise self.not_allowed(
                f"{token.value} {self.current.value} is not allowed", "join conditions with OR or AND"
            )
        pattern = self.binary(0)
        escape = None
        if token.value in ("LIKE", "ILIKE") and self.accept_word("ESCAPE"):
            escape = self.escape_character()
        operator = "RLIKE" if token.value == "REGEXP" else token.value
        return Match(token.start, operator, operand, pattern, escape)

    def escape_character(self) -> str:
        token = self.advance()
        if token.kind is not Kind.STRING or len(token.value) != 1:
            raise self.problem("ESCAPE is followed by one character in quotes", token)
        return token.value

    # Values

    def binary(self, level: int) -> Node:
        """Operators of this level and of those that bind tighter."""
        left = self.sign()
        while self.current.kind in (Kind.SYMBOL, Kind.WORD) and LEVELS.get(self.current.value, -1) >= level:
            token = self.advance()
            right = self.binary(LEVELS[token.value] + 1)
            left = Binary(token.start, SYNONYMS.get(token.value, token.value), left, right)
        return left

    def sign(self) -> Node:
        token = self.current
        if not token.is_symbol("-", "+", "~"):
            return self.postfix(self.primary())
        self.advance()
        if token.value == "-" and self.at_number():
            return self.postfix(self.number(negative=True))
        return Unary(token.start, token.value, self.nested(self.sign))

    def postfix(self, base: Node) -> Node:
        while True:
            token = self.current
            if self.accept("."):
                base = Field(self.current.start, base, self.name("a field"))
                if self.current.is_symbol("("):
                    raise self.not_allowed("a function has a plain name, without a dot", None)
            elif self.accept("["):
                base = Subscript(token.start, base, self.expression())
                self.expect("]")
            elif self.accept("::"):
                base = Cast(token.start, base, self.type(), attempt=False)
            else:
                return base

    def primary(self) -> Node:
        token = self.current
        if token.kind is Kind.STRING:
            return self.string()
        if self.at_number():
            return self.number(negative=False)
        if token.kind is Kind.BINARY:
            return literals.binary(self.advance())
        if self.accept("("):
            return self.parenthesised()
        if token.kind in (Kind.WORD, Kind.QUOTED):
            return self.word()
        if token.is_symbol("*"):
            raise self.not_allowed("* is not allowed in an expression", "name the columns; count() counts the rows")
        raise self.unexpected()

    def parenthesised(self) -> Node:
        node = self.expression()
        if self.current.is_symbol(","):
            raise self.not_allowed("a list in parentheses is not a value", "use array(…) or struct(…)")
        self.expect(")")
        return node

    def string(self) -> Literal:
        """Strings that touch hold a quote between them (`'it''s'`); with space between, they are joined."""
        first = self.advance()
        value, last = first.value, first
        while self.current.kind is Kind.STRING:
            touching = self.current.start == last.end and self.current.text[0] == last.text[-1] == last.text[0]
            last = self.advance()
            value += (last.text[0] if touching else "") + last.value
        return literals.string(value, first.start)

    def at_number(self) -> bool:
        if self.current.kind is Kind.NUMBER:
            return True
        after = self.tokens[min(self.position + 1, len(self.tokens) - 1)]
        return self.current.is_symbol(".") and after.kind is Kind.NUMBER and after.start == self.current.end

    def number(self, *, negative: bool) -> Literal:
        token = self.advance()
        text = token.text + (self.advance().text if token.is_symbol(".") else "")
        return literals.number(text, token.start, negative=negative)

    def word(self) -> Node:
        token, after = self.advance(), self.current
        if token.kind is Kind.WORD:
            special = self.special_word(token, after)
            if special is not None:
                return special
        if self.accept("("):
            return Call(token.start, spelled(token), self.arguments(token))
        return Name(token.start, spelled(token))

    def special_word(self, token: Token, after: Token) -> Node | None:
        if token.is_word("TRUE", "FALSE"):
            return Literal(token.start, token.value == "TRUE", BOOLEAN)
        if token.is_word("NULL"):
            return Literal(token.start, None, NULL)
        if token.is_word("CASE"):
            return self.nested(lambda: self.case(token.start))
        if token.is_word("DATE", "TIMESTAMP") and after.kind is Kind.STRING:
            return literals.moment(token.value, self.advance().value, after.start)
        if token.is_word("INTERVAL") and (after.kind in (Kind.STRING, Kind.NUMBER) or after.is_symbol("-")):
            return self.interval(token.start)
        if token.is_word("CAST", "TRY_CAST") and self.accept("("):
            return self.cast(token)
        if token.is_word("EXTRACT") and self.accept("("):
            return self.extract(token)
        if token.value in RESERVED:
            raise self.unexpected(token)
        return None

    # Calls and special forms

    def arguments(self, function: Token) -> tuple[Node, ...]:
        if self.accept(")"):
            return ()
        aliases = function.value.upper() == "STRUCT"
        return self.listed(lambda: self.argument(aliases))

    def argument(self, aliases: bool) -> Node:
        offset = self.current.start
        if self.current.is_word("DISTINCT", "ALL") and not self.tokens[self.position + 1].is_symbol(",", ")"):
            raise self.not_allowed("DISTINCT is not allowed inside a call", "count_distinct(x) counts different values")
        parameters = self.lambda_parameters()
        if parameters is not None:
            return Lambda(offset, parameters, self.expression())
        value = self.expression()
        if self.current.is_symbol("=>"):
            raise self.not_allowed("arguments go by position, not by name", None)
        if aliases and self.accept_word("AS"):
            return Aliased(offset, value, self.name("a field"))
        return value

    def lambda_parameters(self) -> tuple[str, ...] | None:
        """The names before an arrow, `x ->` or `(x, y) ->`; None, and nothing read, when there is no arrow."""
        ahead, names = self.position, []
        grouped = self.tokens[ahead].is_symbol("(")
        ahead += grouped
        while self.tokens[ahead].kind in (Kind.WORD, Kind.QUOTED):
            names.append(spelled(self.tokens[ahead]))
            ahead += 1
            if not (grouped and self.tokens[ahead].is_symbol(",")):
                break
            ahead += 1
        if grouped and self.tokens[ahead].is_symbol(")"):
            ahead += 1
        if not names or not self.tokens[ahead].is_symbol("->"):
            return None
        self.position = ahead + 1
        return tuple(names)

    def listed(self, item: Callable[[], Node]) -> tuple[Node, ...]:
        items = [item()]
        while self.accept(","):
            items.append(item())
        self.expect(")")
        return tuple(items)

    def cast(self, function: Token) -> Node:
        operand = self.expression()
        self.expect_word("AS")
        type_ = self.type()
        self.expect(")")
        return Cast(function.start, operand, type_, attempt=function.value == "TRY_CAST")

    def extract(self, function: Token) -> Node:
        field = self.name("a part of the time, such as year")
        self.expect_word("FROM")
        operand = self.expression()
        self.expect(")")
        return Extract(function.start, field.upper(), operand)

    def case(self, offset: int) -> Node:
        operand = None if self.current.is_word("WHEN") else self.expression()
        branches = []
        while self.accept_word("WHEN"):
            condition = self.expression()
            self.expect_word("THEN")
            branches.append((condition, self.expression()))
        if not branches:
            raise self.problem("CASE needs at least one WHEN … THEN …")
        otherwise = self.expression() if self.accept_word("ELSE") else None
        self.expect_word("END")
        return Case(offset, operand, tuple(branches), otherwise)

    def interval(self, offset: int) -> Node:
        amounts: list[tuple[int, str]] = []
        if self.current.kind is Kind.STRING and self.tokens[self.position + 1].kind is not Kind.WORD:
            words = self.advance().value.split()
            amounts = [(self.amount(words[at], offset), words[at + 1]) for at in range(0, len(words) - 1, 2)]
            if not words or len(words) % 2:
                raise self.problem("the interval is not understood", hint="write INTERVAL 5 MINUTES", offset=offset)
        while self.current.kind in (Kind.NUMBER, Kind.STRING) or (self.current.is_symbol("-") and not amounts):
            sign = "-" if self.accept("-") else ""
            token = self.advance()
            amounts.append((self.amount(sign + token.value, token.start), self.name("a unit of time")))
        return literals.interval(amounts, offset)

    def amount(self, text: str, offset: int) -> int:
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
            raise self.problem("the length of an interval is a whole number", hint="use a smaller unit", offset=offset)
        return int(text)

    def type(self) -> Type:
        start = self.current
        if start.kind is not Kind.WORD:
            raise self.problem("expected a type", hint="such as int, string or decimal(10,2)")
        written = SPARK_TYPE_WORDS.get(start.text.lower(), start.text.lower()) + self.type_rest(start)
        try:
            found = parse_type(written)
        except TypeSyntaxError as error:
            raise self.problem(str(error), start, hint="such as int, string or decimal(10,2)") from error
        if found != found.decoded:
            raise self.problem("a timestamp has a unit in a source's schema only", start, hint="cast to timestamp")
        return found

    def type_rest(self, start: Token) -> str:
        """The part of a type in brackets, as it is written, with Spark's own type words replaced."""
        self.advance()
        opening, closing = ("<", ">") if start.is_word("ARRAY", "MAP", "STRUCT") else ("(", ")")
        rest, depth = "", 0
        while depth or (not rest and self.current.is_symbol(opening)):
            token = self.advance()
            if token.kind is Kind.END:
                raise self.problem("the type is not closed", start)
            depth += token.text.count(opening) - token.text.count(closing)
            if depth > MAX_NESTING:
                raise self.problem("the type is nested too deeply", start, code="expression_too_deep")
            rest += SPARK_TYPE_WORDS.get(token.text.lower(), token.text)
        return rest
