import sys
from types import ModuleType

import pytest

from policy.prices import Prices
from tests.unit.strategies.conversations import LangChainLike


@pytest.fixture(autouse=True, scope="module")
def langchain_stand_in():
    """Stand in for LangChain's one class that is made here; the real one is in integration."""
    module = ModuleType("langchain_core.messages")
    module.HumanMessage = lambda content: LangChainLike(
        type="human", content=content, additional_kwargs={}, id=None, tool_calls=[]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "langchain_core", ModuleType("langchain_core"))
        patch.setitem(sys.modules, "langchain_core.messages", module)
        yield


@pytest.fixture
def prices():
    """Read .1, write 1.25, output 5."""
    return Prices("m", "caller", 0.1, 1.25, 2.0, 5.0, {}, None, "caller", None)
