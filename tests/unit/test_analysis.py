import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import insert, update

from compactuary import analysis
from compactuary.errors import InputError, LedgerError, SourceError
from ledger.database import open_engine, writing
from ledger.importing import import_logs
from ledger.schema import requests, tool_calls, turns
from migrations.upgrade import upgrade

REPO = Path(__file__).parents[2]

HEAD = "session_id,turn_id,role,model,status,tool_calls,requests,trigger,started_at"


def turn_rows(role, calls, model="claude-opus-4-6", status="ended", trigger="prompt", name="t"):
    return [
        f"s,{role}-{model}-{name}{place},{role},{model},{status},{made},{made + 1},{trigger},"
        f"2026-01-01T00:00:{place % 60:02d}Z"
        for place, made in enumerate(calls)
    ]


def geometric(mean, number):
    """Give the quantiles of a geometric law, so that nothing rests on chance."""
    ranks = (np.arange(number) + 0.5) / number
    return np.ceil(np.log1p(-ranks) / np.log1p(-1 / mean)).astype(int).tolist()


@pytest.fixture(scope="module")
def table_file(tmp_path_factory):
    # "dev": two models, the light one with half the calls; "few": five turns by hand
    rows = [
        *turn_rows("dev", geometric(30, 300)),
        *turn_rows("dev", geometric(15, 60), model="claude-haiku-4-5"),
        *turn_rows("few", [0, 1, 2, 3, 4, 10], model="unpriced-model", trigger="slash"),
        *turn_rows("open", [7], model="", status="cut"),
        *turn_rows("shop/web", geometric(20, 50)),
        *turn_rows("site/web", geometric(20, 40)),
    ]
    path = tmp_path_factory.mktemp("logs") / "turns.csv"
    path.write_text("\n".join([HEAD, *rows, ""]))
    return path


@pytest.fixture(scope="module")
def db(table_file, tmp_path_factory):
    """Return a ledger that holds the table; the tests only read it."""
    file = tmp_path_factory.mktemp("ledger") / "ledger.db"
    engine = open_engine(str(file))
    upgrade(engine)
    import_logs(engine, [table_file])
    engine.dispose()
    return file


def test_a_table_by_hand(db):
    frame = analysis.table("few", at=[0, 7], break_even=3.5, db=db)
    row = frame.loc[0]
    assert (row["role"], row["turns"], row["mean"], row["p50"]) == ("few", 5, 4.0, 3)
    # 25 requests for 20 tool calls, turns without a call told apart from both
    assert row["requests_per_call"] == 25 / 20
    assert (row["m_0"], row["at_risk_0"], row["pays_0"]) == (4.0, 5, True)
    assert (row["m_7"], row["extrapolated_7"]) == (4.0, True)
    assert len(frame) == 1
    assert "Bold: above the break-even of 3.5 requests" in frame.attrs["caption"]


def test_all_roles_come_by_turns_with_their_whole_last(db):
    frame = analysis.table(db=db)
    assert frame["role"].tolist() == [
        "dev",
        "shop/web",
        "site/web",
        "few",
        "open",
        "all roles",
    ]
    assert frame["turns"].tolist() == [360, 50, 40, 5, 1, 456]
    assert frame["m_0"].isna().tolist() == [False, False, False, False, True, False]


def test_break_evens_come_from_prices_of_the_commonest_model(db):
    frame = analysis.table(["dev", "few"], db=db)
    # 150,000 tokens at r = .1, w = 1.25, o = 5 and the assumed sizes: 66,950/9,900
    assert frame["break_even_requests"].tolist() == [
        pytest.approx(66_950 / 9_900),
        pytest.approx(np.nan, nan_ok=True),
    ]
    assert analysis.model_break_even("unpriced-model") is None


def test_each_model_has_its_own_break_even(db):
    given = {"claude-opus-4-6": 20, "claude-haiku-4-5": 30}
    frame = analysis.table("dev", by_model=True, at=[0], break_even=given, db=db)
    assert frame["model"].tolist() == ["claude-opus-4-6", "claude-haiku-4-5"]
    assert frame["turns"].tolist() == [300, 60]
    assert frame["break_even_requests"].tolist() == [20, 30]
    assert frame["pays_0"].tolist() == [True, False]
    assert frame["m_0"].tolist() == pytest.approx([30, 15], rel=0.02)
    assert analysis.table("dev", break_even={}, db=db)["pays_0"].isna().all()


def test_the_unit_of_requests(db):
    frame = analysis.table("few", unit="requests", at=[0], break_even={}, db=db)
    # requests of the six turns: 1 2 3 4 5 11
    assert frame.loc[0, "m_0"] == pytest.approx(26 / 6)
    assert frame.loc[0, "turns"] == 6


def test_a_life_table(db):
    frame = analysis.life_table("few", radix=1000, db=db)
    assert frame[["age", "l", "d", "q", "m", "at_risk", "ended"]].to_numpy().tolist() == [
        [0, 1000, 1000, 1, 4, 5, 5]
    ]
    assert frame.attrs["caption"].startswith("Life table of few: 5 turns")
    with pytest.raises(InputError, match="no turn of this role has ended"):
        analysis.life_table("open", db=db)


def test_turns_and_requests_are_the_rows_of_the_ledger(db):
    frame = analysis.turns(db=db)
    assert len(frame) == 300 + 60 + 6 + 1 + 50 + 40
    assert frame.groupby("role")["tool_calls"].sum()["few"] == 20
    assert frame["started_at"].min() == pd.Timestamp("2026-01-01", tz="UTC")
    assert analysis.requests(db=db).shape[0] == 0


def test_a_planted_split_by_model_pays(db):
    frame = analysis.split("dev", "model", db=db)
    assert frame["part"].tolist() == ["claude-opus-4-6", "claude-haiku-4-5"]
    assert frame["pays"].tolist() == [False, True]
    assert frame.loc[1, "hazard_ratio"] == pytest.approx(2, rel=0.08)
    assert frame.attrs["pays"] is True
    assert "Splitting by model pays" in frame.attrs["reason"]


def test_a_split_by_project_gathers_the_projects_of_a_role(db):
    frame = analysis.split("web", "project", db=db)
    assert frame["part"].tolist() == ["shop", "site"]
    assert frame["turns"].tolist() == [50, 40]
    assert frame.attrs["pays"] is False
    with pytest.raises(InputError, match=r"no turn of this role tells its project.*role-by"):
        analysis.split("dev", "project", db=db)


def test_a_split_by_trigger(db):
    frame = analysis.split("few", "trigger", db=db)
    assert frame["part"].tolist() == ["slash"]
    assert "nothing to compare" in frame.attrs["reason"]


def test_a_split_by_first_tool(sqlite_ledger):
    url = sqlite_ledger.url.render_as_string()
    rows, asked, calls = [], [], []
    for place, (tool, later) in enumerate([("Read", "Bash"), ("Bash", "Read"), ("Read", "Read")]):
        turn_id = f"t{place}"
        rows.append(
            {
                "turn_id": turn_id,
                "session_id": "s",
                "thread_id": "s",
                "source": "test",
                "role": "main",
                "status": "ended",
                "tool_calls": 2,
            }
        )
        # ids sort against the order in which the calls were made
        for position, (name, request_id) in enumerate([(tool, f"z{place}"), (later, f"a{place}")]):
            asked.append(
                {
                    "request_id": request_id,
                    "session_id": "s",
                    "turn_id": turn_id,
                    "position": position,
                }
            )
            calls.append(
                {
                    "request_id": request_id,
                    "tool_call_id": request_id,
                    "turn_id": turn_id,
                    "name": name,
                }
            )
    rows.append(rows[0] | {"turn_id": "late", "entry_calls": 5, "tool_calls": 6})
    rows = [{"entry_calls": 0, **row} for row in rows]
    asked.append(asked[0] | {"request_id": "late", "turn_id": "late"})
    calls.append(calls[0] | {"request_id": "late", "turn_id": "late"})
    with writing(sqlite_ledger) as connection:
        connection.execute(insert(turns), rows)
        connection.execute(insert(requests), asked)
        connection.execute(insert(tool_calls), calls)
    frame = analysis.split("main", "first_tool", db=url)
    assert dict(zip(frame["part"], frame["turns"], strict=True)) == {"Read": 2, "Bash": 1}
    assert "1 turns tell no first tool" in frame.attrs["caption"]
    with writing(sqlite_ledger) as connection:
        unnamed = update(requests).where(requests.c.request_id == "z1")
        connection.execute(unnamed.values(unnamed_tool_calls=1, position=-1))
        late = update(tool_calls).where(tool_calls.c.request_id == "z1")
        connection.execute(late.values(request_id="a1", tool_call_id="z1"))
    # the second turn's first call came without a name
    frame = analysis.split("main", "first_tool", db=url)
    assert frame["part"].tolist() == ["Read"]


def test_logs_are_read_without_a_ledger_and_nothing_is_left(table_file, db, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    direct = analysis.table(from_=table_file)
    pd.testing.assert_frame_equal(direct, analysis.table(db=db))
    with analysis.log_ledger([table_file.parent]) as url:
        assert len(list(tmp_path.iterdir())) == 1
        assert len(analysis.turns(db=url)) == 457
    assert list(tmp_path.iterdir()) == []


def transcript(folder, session):
    """A turn of two calls and an end, in a project's folder."""
    lines = [{"type": "user", "message": {"role": "user", "content": "go"}}]
    for place in range(2):
        use = {"type": "tool_use", "id": f"c{session}{place}", "name": "Bash", "input": {}}
        answer = {"type": "tool_result", "tool_use_id": use["id"], "content": "ok"}
        lines += [
            {"type": "assistant", "message": message(session, place, [use], "tool_use")},
            {"type": "user", "message": {"role": "user", "content": [answer]}},
        ]
    end = message(session, 2, [{"type": "text", "text": "done"}], "end_turn")
    lines.append({"type": "assistant", "message": end})
    for place, line in enumerate(lines):
        line |= {
            "uuid": f"{session}{place}",
            "parentUuid": f"{session}{place - 1}" if place else None,
            "sessionId": session,
            "cwd": folder,
            "timestamp": f"2026-01-01T00:00:{place:02d}.000Z",
        }
    return "".join(json.dumps(line) + "\n" for line in lines)


def message(session, place, content, stop_reason):
    return {
        "id": f"m{session}{place}",
        "role": "assistant",
        "model": "claude-opus-4-6",
        "content": content,
        "stop_reason": stop_reason,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


def test_a_split_of_logs_by_project_and_first_tool(tmp_path):
    for place, folder in enumerate(["/home/x/shop", "/home/x/shop", "/home/x/site"]):
        (tmp_path / f"s{place}.jsonl").write_text(transcript(folder, f"s{place}"))
    frame = analysis.split("main", "project", from_=tmp_path)
    assert dict(zip(frame["part"], frame["turns"], strict=True)) == {"shop": 2, "site": 1}
    frame = analysis.split("main", "first_tool", from_=tmp_path)
    assert (frame["part"].tolist(), frame["turns"].tolist()) == (["Bash"], [3])
    assert analysis.requests(from_=tmp_path)["output"].sum() == 9 * 5


def test_a_log_that_can_not_be_read_stops_the_analysis(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    broken = tmp_path / "broken.jsonl"
    # a last line without its end is one that is still being written, and no fault
    broken.write_text(transcript("/shop", "s")[:-20] + "\n")
    with pytest.raises(SourceError, match=r"broken\.jsonl:6.*not valid JSON"):
        analysis.table(from_=broken)
    with analysis.log_ledger(broken, skip_corrupt=True) as url:
        assert len(analysis.turns(db=url)) == 1
    with pytest.raises(SourceError, match="no such file or folder"):
        analysis.table(from_=tmp_path / "nowhere")
    assert [path.name for path in tmp_path.iterdir()] == ["broken.jsonl"]


def test_a_missing_ledger_is_not_made(tmp_path):
    missing = tmp_path / "ledger.db"
    with pytest.raises(LedgerError, match=r"ledger\.db: there is no ledger here"):
        analysis.table(db=missing)
    assert not missing.exists()


def test_a_ledger_and_logs_at_once_are_refused(db, table_file):
    with pytest.raises(InputError, match="db, from_"):
        analysis.table(db=db, from_=table_file)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda db: analysis.table("nobody", db=db), "no turn of this role.*Known roles: dev, few"),
        (lambda db: analysis.table(unit="tokens", db=db), "unit"),
        (lambda db: analysis.split("nobody", db=db), "no turn of this role"),
        (lambda db: analysis.split("dev", "weather", db=db), "first_tool"),
        (lambda db: analysis.plot_remaining("open", db=db), "no role has a turn that ended"),
    ],
)
def test_wrong_questions_are_refused(db, ask, message):
    with pytest.raises(InputError, match=message):
        ask(db)


def test_a_picture_is_drawn_and_saved(db, tmp_path):
    figure = analysis.plot_remaining(["dev", "few"], save=tmp_path / "m.svg", db=db)
    assert (tmp_path / "m.svg").read_text().startswith("<?xml")
    labels = [line.get_label() for line in figure.axes[0].lines]
    assert {"dev", "few"} <= set(labels)


def run(script):
    head = "import sys; sys.path.insert(0, sys.argv[1]); "
    return subprocess.run(
        [sys.executable, "-c", head + script, str(REPO)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_light_user_pays_for_no_heavy_package():
    heavy = "print([n for n in ('pandas', 'matplotlib', 'lifelines') if n in sys.modules])"
    done = run(f"import compactuary.analysis; {heavy}")
    assert done.stdout == "[]\n", done.stderr


def test_a_missing_extra_is_named():
    done = run("sys.modules['sqlalchemy'] = None; import compactuary.analysis")
    assert done.stderr.endswith(
        "MissingExtraError: compactuary.analysis needs packages that the extra 'analysis' brings "
        '(sqlalchemy is missing). Install them with: pip install "compactuary[analysis]"\n'
    )
