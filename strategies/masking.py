"""Secrets are masked in whatever outlives the conversation: memory, logs, transcripts, summaries.

The detectors are those of detect-secrets, without the ones that guess by entropy or by addresses:
hashes and identifiers are what an agent has to keep.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from compactuary.errors import MissingExtraError

__all__ = ["check_masking", "masked", "masked_value"]

_GUESSING = frozenset({"Base64HighEntropyString", "HexHighEntropyString", "IPPublicDetector"})
#: A whole key, of which the library finds the first line, and tokens that it does not know.
_MORE = {
    "Private Key": re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:.*?-----END [A-Z ]*PRIVATE KEY-----|.*\Z)", re.DOTALL
    ),
    "API Key": re.compile(r"\b(?:sk|pk|rk)-[A-Za-z0-9][A-Za-z0-9_-]{16,}|\bAIza[\w-]{30,}"),
    "GitHub Token": re.compile(r"\bgithub_pat_\w{20,}"),
    "Bearer Token": re.compile(r"(?i)\b(?:bearer|basic) +[A-Za-z0-9._~+/=-]{16,}"),
}
#: Every name that the library takes for a secret's holds one of these; a value follows only behind
#: a sign or a quote. The library's own rules are slow on long words, so they see no more than this.
_NAMED = re.compile(
    r"(?i)[\w.-]{0,30}(?:key|pass|pwd|secret|contra|token)[\w.\-\]\[)'\"]{0,30}\s{0,4}[:=(>'\"@!]"
    r"[^\n]{0,200}[^\s'\"]{0,4000}"
)
_NAMES = re.compile(r"(?i)key|pass|pwd|secret|contra|token")
#: Beside its names: what shells and configurations call a token, quoted or not.
_TOKEN = re.compile(r"(?i)token['\"]?\s{0,4}[:=]+\s{0,4}['\"]?([^\s'\",;]{8,})")
#: What Spanish and Russian call them; a value without a digit is taken for a word.
_ELSEWHERE = re.compile(
    r"(?i)((?:contraseña|clave (?:de )?(?:la )?api|пароль|токен|секрет|ключ api)['\"]?\s{0,4}[:=]+"
    r"\s{0,4}['\"]?)(?=[^\s'\",;]{0,200}\d)[^\s'\",;]{8,}"
)
#: Some of the library's patterns are worse than linear, so they see so much at a time.
_CHUNKS = re.compile(r"(?s).{1,6000}(?=\s|\Z)|.{1,6000}")
#: What stands behind such a name in code that declares it.
_DECLARED = re.compile(r"(?i)(str|bool|int|bytes|string|none|null|true|false|optional|any)\b")
_MASKED = "[masked "
#: No secret with its name is shorter, and most texts of a message's fields are.
_LEAST_SECRET = 8


def check_masking() -> None:
    """Make sure that secrets can be masked, before anything is paid for or changed.

    Raises
    ------
    MissingExtraError
        detect-secrets is not installed.
    """
    _patterns()
    _rules()


def masked(text: str) -> str:
    """Return a text with every secret found in it replaced by ``[masked KIND]``.

    Raises
    ------
    MissingExtraError
        detect-secrets is not installed.
    """
    if len(text) < _LEAST_SECRET:
        return text
    for kind, pattern in _MORE.items():
        text = pattern.sub(f"{_MASKED}{kind}]", text)
    text = _ELSEWHERE.sub(rf"\1{_MASKED}Secret Keyword]", text)
    text = "".join(map(_known_masked, _CHUNKS.findall(text)))
    return _NAMED.sub(_named_masked, text) if _NAMES.search(text) else text


def masked_value(value: Any) -> Any:
    """Return a JSON value with every secret in its texts masked.

    A field whose name says that it holds a secret is masked as a line of a configuration would be.
    """
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, Mapping):
        return {name: _field_masked(str(name), inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [masked_value(inner) for inner in value]
    return value


def _field_masked(name: str, value: Any) -> Any:
    if isinstance(value, str) and "\n" not in value and _NAMES.search(name):
        line = f'{name} = "{value}"'
        hidden = _NAMED.sub(_named_masked, line)
        if hidden != line:
            return hidden.removeprefix(f'{name} = "').removesuffix('"')
    return masked_value(value)


def _known_masked(text: str) -> str:
    """Mask what looks like a secret by itself."""
    for kind, pattern in _patterns():
        if pattern.search(text):
            text = pattern.sub(f"{_MASKED}{kind}]", text)
    return text


def _named_masked(found: re.Match[str]) -> str:
    """Mask values that stand behind a secret's name."""
    told = found.group(0)
    for value in sorted(set(_values(told)), key=len, reverse=True):
        if value and "[masked" not in value and not _DECLARED.match(value):
            told = told.replace(value, f"{_MASKED}Secret Keyword]")
    return told


def _values(told: str) -> Iterator[str]:
    for pattern, group in _rules():
        for found in pattern.finditer(told):
            yield found.group(group)
    yield from _TOKEN.findall(told)


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return the library's patterns by kind of secret: all of a match is masked, not a group."""
    classes = _library("detect_secrets.core.plugins.util").get_mapping_from_secret_type_to_class()
    return tuple(
        (str(kind), re.compile(pattern.pattern, pattern.flags))
        for kind, each in classes.items()
        if each.__name__ not in _GUESSING
        for pattern in getattr(each, "denylist", ())
        if isinstance(getattr(pattern, "pattern", None), str)
    )


@cache
def _rules() -> tuple[tuple[re.Pattern[str], int], ...]:
    """Return the library's rules for values behind a secret's name, quoted and bare."""
    module = _library("detect_secrets.plugins.keyword")
    quoted: Mapping[re.Pattern[str], int] = module.QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP
    bare: Mapping[re.Pattern[str], int] = module.CONFIG_DENYLIST_REGEX_TO_GROUP
    return (*quoted.items(), *bare.items())


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "masking secrets needs packages that the extra 'strategies' brings "
            f"({error.name} is missing)",
            remedy='Install them with: pip install "compactuary[strategies]"',
        ) from error
