"""Functions of text, binary values, JSON and hashes."""

from __future__ import annotations

import re

from tidemark.compiler.graph.expression.function_rules import (
    ANY,
    BINARY_VALUE,
    BYTES,
    CONCATENATED,
    COUNT,
    GROUP,
    INTEGER,
    PATTERN,
    POSITION,
    STRUCTURED,
    TEXT,
    TEXT_OR_TEXTS,
    WHOLE,
    Arguments,
    Function,
    concatenated,
    constant,
    free_of,
    many,
    one_of,
    optional,
)
from tidemark.compiler.graph.expression.result import Checked, Refusal
from tidemark.schema import BINARY, BOOLEAN, INT, LONG, STRING, Type, TypeSyntaxError, array_of, parse_type

JSON_TYPE = constant(TEXT, "a type in quotes, such as 'struct<id:int,name:string>'")
UTF_8 = one_of("utf-8")
HASH_BITS = constant(INTEGER, "0, 224, 256, 384 or 512", lambda value: value in (0, 224, 256, 384, 512))
REPLACEMENT = constant(TEXT, "text in quotes")
URL_PART = constant(
    TEXT,
    "one of 'HOST', 'PATH', 'QUERY', 'REF', 'PROTOCOL', 'FILE', 'AUTHORITY', 'USERINFO'",
    lambda value: value in ("HOST", "PATH", "QUERY", "REF", "PROTOCOL", "FILE", "AUTHORITY", "USERINFO"),
)
DELIMITER = constant(TEXT, "text in quotes that is not empty", lambda value: value != "")
BASE = constant(INTEGER, "a constant from 2 to 36", lambda value: isinstance(value, int) and 2 <= value <= 36)


def json_type(arguments: Arguments) -> Type:
    try:
        found = parse_type(str(arguments[1].literal))
    except TypeSyntaxError as error:
        raise Refusal(
            f"the type of the JSON is not understood: {error}", "as in 'struct<id:int,name:string>'"
        ) from error
    if found.name not in ("struct", "array", "map") or found != found.decoded:
        raise Refusal("JSON is read as a struct, array or map", "use get_json_object for a single value")
    return found


def extracted(arguments: Arguments) -> Type:
    groups = _groups(arguments[1])
    wanted = arguments[2].literal if len(arguments) > 2 else 1
    if isinstance(wanted, int) and wanted > groups:
        raise Refusal(
            f"group {wanted} is wanted, but the pattern has {groups or 'none'}",
            "put it in parentheses, as in '([0-9]+)', or ask for group 0, the whole match",
        )
    return STRING


def replaced(arguments: Arguments) -> Type:
    groups = _groups(arguments[1])
    for match in re.finditer(r"\\.|\\|\$([0-9]?)", str(arguments[2].literal), re.DOTALL):
        if match.group() == "\\" or (match.group().startswith("$") and not 0 <= int(match.group(1) or -1) <= groups):
            raise Refusal(
                f"{match.group()} in the replacement stands for nothing",
                "$1 is the first group; r'\\$' and r'\\\\' are the characters themselves",
            )
    return STRING


def _groups(pattern: Checked) -> int:
    """How many groups a Java pattern captures: round brackets outside of classes, not escaped, not `(?:`."""
    plain = re.sub(r"\\Q.*?(\\E|$)|\\.|\[\^?\]?[^\]]*\]", "", str(pattern.literal), flags=re.DOTALL)
    return len(re.findall(r"\((?!\?)|\(\?<(?![=!])", plain))


TEXT_FUNCTIONS: tuple[Function, ...] = (
    Function("ascii", (TEXT,), INT, "code of the first character", "ascii(name)"),
    Function("base64", (BYTES,), STRING, "binary as base64 text", "base64(payload)"),
    Function("bit_length", (BYTES,), INT, "length in bits", "bit_length(name)"),
    Function("btrim", (TEXT, optional(TEXT)), STRING, "without these characters at both ends", "btrim(name, 'x')"),
    Function("char_length", (BYTES,), INT, "number of characters", "char_length(name)"),
    Function("chr", (WHOLE,), STRING, "the character of a code", "chr(big)"),
    Function(
        "concat", (many(CONCATENATED),), concatenated, "texts or arrays joined; null if one is null", "concat(name, n)"
    ),
    Function(
        "concat_ws",
        (TEXT, many(TEXT_OR_TEXTS)),
        STRING,
        "joined with a separator; nulls left out",
        "concat_ws('-', name, tags)",
    ),
    Function("contains", (TEXT, TEXT), BOOLEAN, "whether the second text is in the first", "contains(name, 'a')"),
    Function("conv", (TEXT, BASE, BASE), STRING, "a number written in another base", "conv(name, 16, 10)"),
    Function("crc32", (BYTES,), LONG, "CRC-32 checksum", "crc32(payload)"),
    Function(
        "decode",
        (BINARY_VALUE, UTF_8),
        STRING,
        "binary read as UTF-8 text, with � for what is none",
        "decode(payload, 'utf-8')",
        sql="make_valid_utf8(CAST({0} AS STRING))",
    ),
    Function("encode", (TEXT, UTF_8), BINARY, "text as UTF-8 bytes", "encode(name, 'utf-8')"),
    Function("endswith", (TEXT, TEXT), BOOLEAN, "whether the text ends so", "endswith(name, 'z')"),
    Function("find_in_set", (TEXT, TEXT), INT, "place of a word in a list with commas", "find_in_set(name, 'a,b')"),
    Function(
        "from_json",
        (TEXT, JSON_TYPE),
        json_type,
        "JSON text as a typed value; null if it is none",
        "from_json(body, 'struct<a:int>')",
    ),
    Function("get_json_object", (TEXT, TEXT), STRING, "what a path finds in JSON text", "get_json_object(body, '$.a')"),
    Function("hash", (many(ANY),), free_of("map", INT), "32-bit Murmur3 hash", "hash(name, n)"),
    Function("hex", (BYTES,), STRING, "as hexadecimal digits", "hex(payload)"),
    Function("initcap", (TEXT,), STRING, "each word with a capital", "initcap(name)"),
    Function("instr", (TEXT, TEXT), INT, "first position of the second text, from 1; 0 if none", "instr(name, 'a')"),
    Function("left", (TEXT, INTEGER), STRING, "the first characters", "left(name, 2)"),
    Function("length", (BYTES,), INT, "number of characters or bytes", "length(name)"),
    Function("levenshtein", (TEXT, TEXT), INT, "edits between two texts", "levenshtein(name, 'abc')"),
    Function(
        "locate",
        (TEXT, TEXT, optional(INTEGER)),
        INT,
        "position of the first text in the second",
        "locate('a', name, 2)",
    ),
    Function("lower", (TEXT,), STRING, "in lower case", "lower(name)"),
    Function("lpad", (TEXT, COUNT, optional(TEXT)), STRING, "filled up on the left", "lpad(name, 5, '0')"),
    Function("ltrim", (TEXT,), STRING, "without spaces on the left", "ltrim(name)"),
    Function("mask", (TEXT,), STRING, "letters and digits hidden", "mask(name)"),
    Function("md5", (BYTES,), STRING, "MD5 digest", "md5(payload)"),
    Function("octet_length", (BYTES,), INT, "length in bytes", "octet_length(name)"),
    Function("parse_url", (TEXT, URL_PART, optional(TEXT)), STRING, "a part of a URL", "parse_url(name, 'QUERY', 'q')"),
    Function("regexp_count", (TEXT, PATTERN), INT, "number of matches", "regexp_count(name, '[0-9]')"),
    Function(
        "regexp_extract",
        (TEXT, PATTERN, optional(GROUP)),
        extracted,
        "a group of the first match",
        "regexp_extract(name, '(a+)b', 1)",
    ),
    Function("regexp_like", (TEXT, PATTERN), BOOLEAN, "whether a part matches", "regexp_like(name, '^a')"),
    Function(
        "regexp_replace",
        (TEXT, PATTERN, REPLACEMENT),
        replaced,
        "matches replaced",
        "regexp_replace(name, '[0-9]+', '#')",
    ),
    Function("repeat", (TEXT, COUNT), STRING, "repeated", "repeat(name, 3)"),
    Function("replace", (TEXT, TEXT, optional(TEXT)), STRING, "a part replaced everywhere", "replace(name, 'a', 'b')"),
    Function("right", (TEXT, INTEGER), STRING, "the last characters", "right(name, 2)"),
    Function("rpad", (TEXT, COUNT, optional(TEXT)), STRING, "filled up on the right", "rpad(name, 5, '0')"),
    Function("rtrim", (TEXT,), STRING, "without spaces on the right", "rtrim(name)"),
    Function("sha1", (BYTES,), STRING, "SHA-1 digest", "sha1(payload)"),
    Function("sha2", (BYTES, HASH_BITS), STRING, "SHA-2 digest", "sha2(payload, 256)"),
    Function("soundex", (TEXT,), STRING, "code of the sound", "soundex(name)"),
    Function("split", (TEXT, PATTERN, optional(INTEGER)), array_of(STRING), "cut at each match", "split(name, ',')"),
    Function("split_part", (TEXT, DELIMITER, POSITION), STRING, "one piece, from 1", "split_part(name, ',', 2)"),
    Function("startswith", (TEXT, TEXT), BOOLEAN, "whether the text begins so", "startswith(name, 'a')"),
    Function("substr", (TEXT, INTEGER, optional(INTEGER)), STRING, "a part, from 1", "substr(name, 2, 3)"),
    Function("substring", (TEXT, INTEGER, optional(INTEGER)), STRING, "a part, from 1", "substring(name, n)"),
    Function(
        "substring_index", (TEXT, TEXT, INTEGER), STRING, "up to the n-th separator", "substring_index(name, '.', 2)"
    ),
    Function("to_json", (STRUCTURED,), STRING, "as JSON text", "to_json(point)"),
    Function(
        "translate", (TEXT, TEXT, TEXT), STRING, "characters replaced one by one", "translate(name, 'abc', 'xyz')"
    ),
    Function("trim", (TEXT,), STRING, "without spaces at both ends", "trim(name)"),
    Function("unhex", (TEXT,), BINARY, "hexadecimal digits as binary", "unhex(name)"),
    Function("upper", (TEXT,), STRING, "in upper case", "upper(name)"),
    Function("xxhash64", (many(ANY),), free_of("map", LONG), "64-bit xxHash", "xxhash64(name, n)"),
)
