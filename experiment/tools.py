"""The agent's three tools: as a provider is told of them, and as the graph runs them at a desk."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from experiment.desk import Desk

__all__ = ["TOOL_SCHEMAS", "tools_of"]

_NUMBER = {"type": "integer", "description": "Its number in the outline."}
_FIGURES = {
    "type": "object",
    "description": "Every quantity that the section states, with its value as a string.",
    "additionalProperties": {"type": "string"},
}


def _schema(name: str, description: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": description, "parameters": parameters}


#: Name, description and a JSON schema of the arguments.
TOOL_SCHEMAS: Sequence[Mapping[str, Any]] = (
    _schema(
        "search",
        "Find documents on a topic: ids and titles, and whatever else comes up.",
        query={"type": "string", "description": "A topic of the outline."},
    ),
    _schema(
        "read",
        "Read one document whole.",
        doc_id={"type": "string", "description": "Such as doc-001."},
    ),
    _schema(
        "write_section",
        "Put a section into the report.",
        number=_NUMBER,
        angle={"type": "string", "description": "The report's angle."},
        figures=_FIGURES,
    ),
)


def tools_of(desk: Desk) -> list[BaseTool]:
    """Return the tools that work at a desk."""
    work: dict[str, Callable[..., str]] = {
        "search": desk.search,
        "read": desk.read,
        "write_section": desk.write_section,
    }
    return [
        StructuredTool(
            name=each["name"],
            description=each["description"],
            args_schema=each["parameters"],
            func=work[each["name"]],
        )
        for each in TOOL_SCHEMAS
    ]
