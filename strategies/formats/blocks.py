"""Content blocks as the formats share them: texts, images, and what nobody needs to look into."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

from compactuary.errors import InputError
from strategies.conversation import Part
from strategies.raw_fields import field_of, is_list, kind_of, size_of

__all__ = ["content_parts", "listed", "malformed", "role_of", "text_and_images"]

_TEXTS = frozenset({"text", "input_text", "output_text", "refusal"})
_IMAGES = frozenset({"image", "image_url", "input_image", "computer_screenshot"})
#: Files travel as base64, which says nothing about their tokens: each counts as an image.
_FILES = frozenset({"document", "file", "input_file", "input_audio", "audio"})


def malformed(problem: str, index: int, value: object, remedy: str) -> InputError:
    """Return the error that names an entry by its place."""
    return InputError(problem, where=f"messages[{index}]", value=value, remedy=remedy)


def listed(raw: Any, name: str, index: int) -> Iterable[Any]:
    """Return a field that holds a list, or nothing.

    Raises
    ------
    InputError
        It holds something else.
    """
    value = field_of(raw, name) or ()
    if not is_list(value):
        remedy = "Give a list, or leave it out."
        raise malformed(f"{name} is no list", index, value, remedy)
    return cast(Iterable[Any], value)


def role_of(raw: Any, index: int, known: tuple[str, ...]) -> str:
    """Return an entry's role.

    Raises
    ------
    InputError
        There is none, or it is none of `known`.
    """
    role = field_of(raw, "role")
    if role not in known:
        raise InputError(
            "unknown role",
            where=f"messages[{index}].role",
            value=role,
            remedy=f"Known: {', '.join(known)}.",
        )
    return str(role)


def content_parts(content: Any, index: int) -> Iterator[Part]:
    """Yield text and image parts of a message's content: a text, a list of blocks, or nothing.

    Raises
    ------
    InputError
        The content is something else.
    """
    if content is None:
        return
    if isinstance(content, str):
        yield Part("text", content, characters=len(content))
        return
    if not is_list(content):
        remedy = "Give a text or a list of blocks."
        raise malformed("content is neither a text nor a list", index, content, remedy)
    for place, block in enumerate(content):
        yield block_part(block, place)


def block_part(block: Any, place: int) -> Part:
    """Return the part of a block that is no call and no result."""
    if isinstance(block, str):
        return Part("text", block, place=place, characters=len(block))
    kind = kind_of(block)
    if kind in _TEXTS:
        text = str(field_of(block, "text") or field_of(block, "refusal") or "")
        return Part("text", text, place=place, characters=len(text))
    if kind in _IMAGES:
        return Part("image", place=place, images=1)
    if kind in _FILES:
        inline = field_of(field_of(block, "source"), "data")
        if field_of(field_of(block, "source"), "type") == "text" and isinstance(inline, str):
            return Part("other", inline, place=place, characters=len(inline))
        return Part("other", place=place, images=1)
    return Part("other", place=place, characters=size_of(block))


def text_and_images(content: Any) -> tuple[str, int, int]:
    """Return what a tool result says: its text, its characters, its images."""
    if content is None:
        return "", 0, 0
    if isinstance(content, str):
        return content, len(content), 0
    if not is_list(content):
        text = str(content)
        return text, len(text), 0
    parts = [block_part(block, place) for place, block in enumerate(content)]
    text = "\n".join(part.text for part in parts if part.kind == "text")
    return text, sum(part.characters for part in parts), sum(part.images for part in parts)
