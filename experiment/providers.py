"""Who answers: the simulated model, or a provider's real one through its SDK."""

from typing import Literal

from compactuary.errors import InputError
from experiment.anthropic_model import AnthropicModel
from experiment.model import Model
from experiment.openai_model import OpenAIModel
from experiment.simulated import SimulatedModel

__all__ = ["DEFAULT_MODEL", "PROVIDERS", "SIMULATED", "model_name", "model_of"]

Provider = Literal["simulated", "anthropic", "openai"]
SIMULATED = "simulated"
PROVIDERS: tuple[Provider, ...] = ("simulated", "anthropic", "openai")
#: Whose prices the simulated model is billed at, and whom Anthropic is asked for.
DEFAULT_MODEL = "claude-opus-4-8"


def model_name(provider: str, given: str | None) -> str:
    """Return the name of the model that answers, or whose prices count.

    Raises
    ------
    InputError
        There is no such provider, or it has no default model.
    """
    if provider not in PROVIDERS:
        raise InputError(
            "no such provider",
            where="--provider",
            value=provider,
            remedy=f"Choose among {', '.join(PROVIDERS)}",
        )
    if given:
        return given
    if provider == "openai":
        raise InputError(
            "is needed with --provider openai", where="--model", remedy="Name one of its models"
        )
    return DEFAULT_MODEL


def model_of(provider: str, name: str, seed: int) -> Model:
    """Return who answers.

    Parameters
    ----------
    provider : str
        One of `PROVIDERS`.
    name : str
        The model's name, as its provider has it.
    seed : int
        Of the simulated model; a real one knows none.

    Raises
    ------
    MissingExtraError
        The provider's SDK is not installed.
    InputError
        Its key is not set.
    """
    if provider == "anthropic":
        return AnthropicModel(name)
    if provider == "openai":
        return OpenAIModel(name)
    return SimulatedModel(seed)
