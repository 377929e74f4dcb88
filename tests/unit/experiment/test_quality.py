"""Quality, worked out by hand."""

from itertools import pairwise

import pytest

from experiment.assignment import CLOSING, SECTIONS
from experiment.desk import Desk, Reading, Statement
from experiment.documents import documents
from experiment.quality import FACTS, STATED_AGAIN, quality_of, quality_score


def test_the_outline_has_seventeen_facts_and_thirty_five_places_to_contradict():
    # Eight sections with two figures each, and the angle.
    assert FACTS == 17
    # Seven later sections: the angle, a figure of the section before; four of them one more of the
    # fourth before. The closing section: the angle and sixteen figures.
    assert STATED_AGAIN == 7 + 7 + 4 + 17


@pytest.mark.parametrize(
    ("figures", "score"),
    [
        ((17, 0, 0, 24), 1.0),
        ((0, 35, 24, 24), 0.0),
        ((17, 99, 0, 24), 0.75),
        ((17, 0, 0, 0), 0.75),
        # ½·8/17 + ¼·(1 − 7/35) + ¼·(1 − 10/40)
        ((8, 7, 10, 40), 0.2352941 + 0.2 + 0.1875),
    ],
)
def test_the_score_is_half_facts_a_quarter_agreement_a_quarter_new_reads(figures, score):
    assert quality_score(*figures) == pytest.approx(score)


def test_each_part_alone_moves_the_score_the_right_way():
    facts = [quality_score(n, 0, 0, 24) for n in range(18)]
    against = [quality_score(17, n, 0, 24) for n in range(36)]
    again = [quality_score(17, 0, n, 24) for n in range(24)]
    assert all(less < more for less, more in pairwise(facts))
    assert all(less > more for less, more in pairwise(against))
    assert all(less > more for less, more in pairwise(again))


def test_a_report_is_judged_by_what_was_done_at_its_desk():
    on_file = documents(0)
    value = {one.quantity: str(one.value) for one in on_file[1:3]}
    disputed, plain = SECTIONS[0].own
    desk = Desk(on_file)
    desk.readings = [Reading("doc-001", 1), Reading("doc-002", 1), Reading("doc-001", 5)]
    desk.statements = [
        Statement(1, "angle", "costs"),
        Statement(1, disputed, value[disputed]),
        Statement(1, plain, value[plain]),
        Statement(2, "angle", "jobs"),
        Statement(2, disputed, value[disputed]),
        Statement(CLOSING.number, "angle", "costs"),
        Statement(CLOSING.number, disputed, "7"),
        Statement(CLOSING.number, plain, value[plain]),
        # Nobody stated it before, so nothing survived.
        Statement(CLOSING.number, "wind limit", "12"),
    ]
    judged = quality_of(desk)
    assert (judged.facts_survived, judged.reads) == (2, 3)
    assert [(one.document, one.section, one.first_section) for one in judged.read_again] == [
        ("doc-001", 5, 1)
    ]
    assert [(one.quantity, one.section, one.value) for one in judged.contradictions] == [
        ("angle", 2, "jobs"),
        (disputed, CLOSING.number, "7"),
    ]
    assert judged.contradictions[0].first_value == "costs"
    assert judged.score == pytest.approx(0.5 * 2 / 17 + 0.25 * 33 / 35 + 0.25 * 2 / 3)


def test_a_figure_that_no_document_gives_is_no_fact():
    desk = Desk(documents(0))
    name = SECTIONS[0].plain
    desk.statements = [Statement(1, name, "7"), Statement(CLOSING.number, name, "7")]
    assert quality_of(desk).facts_survived == 0
