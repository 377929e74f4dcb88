"""A database's password is in no message, wherever in the URL it stands."""

import pytest
from sqlalchemy import create_engine

from compactuary.errors import InputError
from ledger.database import open_engine, shown_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql+psycopg://u:hunter2@h/db", "postgresql+psycopg://u:***@h/db"),
        (
            "postgresql+psycopg://u@h/db?password=hunter2&sslpassword=hunter2&sslmode=require",
            "postgresql+psycopg://u@h/db?sslmode=require",
        ),
        ("sqlite:////tmp/l.db", "sqlite:////tmp/l.db"),
    ],
)
def test_a_url_is_shown_without_its_passwords(url, shown):
    engine = create_engine(url)
    assert shown_url(engine) == shown
    engine.dispose()


@pytest.mark.parametrize("url", ["mysql://u:hunter2@h/db", "nonsense://u:p@hunter2@h/x"])
def test_a_url_that_is_refused_is_shown_without_it_too(url):
    with pytest.raises(InputError) as refused:
        open_engine(url)
    assert "hunter2" not in str(refused.value)
    assert "://***@h/" in str(refused.value)
