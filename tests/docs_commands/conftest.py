"""What the tests of the commands share."""

from __future__ import annotations

import pytest
from docs_commands.seeds import Store, shared


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """See there."""
    pytest.importorskip("pip")
    return Store(shared(tmp_path_factory.getbasetemp()))
