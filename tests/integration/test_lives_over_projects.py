from compactuary.log_ledger import log_ledger, open_ledger
from compactuary.role_lives import lives_over_projects, role_lives
from examples.claude_code_tree import write_tree


def test_roles_over_projects_are_those_imported_without_one(tmp_path):
    write_tree(tmp_path / "logs", sessions=12)
    with log_ledger(tmp_path / "logs") as url, open_ledger(url) as connection:
        plain = role_lives(connection)
    with log_ledger(tmp_path / "logs", role_by_project=True) as url, open_ledger(url) as connection:
        assert len(role_lives(connection).roles) > len(plain.roles)
        merged = lives_over_projects(connection)
    told = [
        [(row.role, row.turns, row.break_even_requests, row.life and row.life.mean.tolist())
         for row in [*lives.roles, lives.whole]]
        for lives in (plain, merged)
    ]  # fmt: skip
    assert told[0] == told[1]
    assert plain.paces == merged.paces
