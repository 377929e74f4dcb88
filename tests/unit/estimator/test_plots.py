import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compactuary.errors import InputError
from estimator.histogram import Histogram
from estimator.note_table import RoleLife
from estimator.plots import plot_remaining, save_figure

REPO = Path(__file__).parents[3]


def role(name="dev", calls=range(1, 41), **more):
    calls = list(calls)
    return RoleLife.of(name, Histogram.from_turns(calls, [True] * len(calls)), **more)


def texts_of(axes):
    return [text.get_text() for text in axes.texts]


def everything_within(figure):
    """Whether all that is drawn lies inside the picture."""
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    # a hair's breadth for the rounding of glyphs
    return box.x0 > -0.06 and box.y0 > -0.06 and box.x1 < width + 0.06 and box.y1 < height + 0.06


def test_lines_are_the_plain_means():
    # N uniform on 1 … 40 has m(i) = (40 − i + 1)/2, up to τ = 20
    figure = plot_remaining([role()])
    axes = figure.axes[0]
    solid = next(line for line in axes.lines if line.get_label() == "dev")
    ages, means = solid.get_data()
    assert ages.tolist() == list(range(21))
    assert means == pytest.approx([(41 - age) / 2 for age in range(21)])
    tail_ages, tail_means = next(
        line for line in axes.lines if line.get_linestyle() == ":"
    ).get_data()
    assert (tail_ages[0], tail_ages[-1]) == (20, 22)
    assert set(tail_means) == {10.5}


def test_turns_at_risk_stand_below_the_ages():
    counts = plot_remaining([role()]).axes[1]
    ticks = [int(text.get_position()[0]) for text in counts.texts]
    assert ticks[:2] == [0, 5]
    assert texts_of(counts)[:2] == ["40", "35"]
    assert [tick.get_text() for tick in counts.get_yticklabels()] == ["dev"]


def test_past_the_tail_age_no_number_is_claimed():
    counts = plot_remaining([role()], until_age=40).axes[1]
    known = {int(text.get_position()[0]): text.get_text() for text in counts.texts}
    assert (known[20], known[40]) == ("20", "–")


def test_the_break_even_is_drawn_in_the_unit_of_the_axis():
    axes = plot_remaining([role(break_even_requests=9, requests_per_call=0.75)]).axes[0]
    assert [set(line.get_ydata()) for line in axes.lines if line.get_color() == "black"] == [
        set(),
        {12.0},
    ]
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["dev", "break-even, 12.0"]


def test_break_evens_that_differ_have_their_roles_colours():
    roles = [role("two", break_even_requests=5), role("nine", break_even_requests=9), role("none")]
    axes = plot_remaining(roles).axes[0]
    colours = {line.get_label(): line.get_color() for line in axes.lines}
    flat = {
        line.get_ydata()[0]: line.get_color()
        for line in axes.lines
        if list(line.get_xdata()) == [0, 1]
    }
    assert flat == {5: colours["two"], 9: colours["nine"]}
    assert "break-even, 5.0–9.0" in colours


@pytest.mark.parametrize(("number", "axes"), [(1, 2), (3, 2), (4, 2), (5, 6), (13, 16)])
def test_many_roles_get_panels(number, axes):
    roles = [role(f"role {place}", break_even_requests=5) for place in range(number)]
    figure = plot_remaining(roles)
    assert len(figure.axes) == axes
    assert everything_within(figure)
    if number > 4:
        assert [axes.get_title(loc="left") for axes in figure.axes[:number]] == [
            role.role for role in roles
        ]
        labels = [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
        assert labels[0] == "0\n40"
        assert not figure.axes[number].axison if axes > number else True


def test_strange_names_are_shown_as_they_are(tmp_path):
    names = ["_hidden", "$x_{", "a very long name of a role that goes on and on and on", r"\frac"]
    figure = plot_remaining([role(name) for name in names])
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert [text.strip("\N{ZERO WIDTH SPACE}") for text in legend] == [
        "_hidden",
        "$x_{",
        "a very long name of a role …",
        r"\frac",
    ]
    assert everything_within(figure)
    assert save_figure(figure, tmp_path / "names.png").exists()
    panels = plot_remaining([role(name) for name in [*names, "fifth"]])
    assert save_figure(panels, tmp_path / "panels.png").exists()


def test_tiny_and_huge_lives_share_a_logarithmic_axis():
    figure = plot_remaining([role("tiny", [1] * 30), role("huge", range(4000, 4040))])
    axes = figure.axes[0]
    assert axes.get_yscale() == "log"
    assert axes.get_ylim()[0] < 1
    assert axes.get_ylim()[1] > 4000
    assert everything_within(figure)
    assert plot_remaining([role()]).axes[0].get_yscale() == "linear"


def test_a_wide_band_does_not_flatten_the_line():
    # two ends: the band of Student's t with one degree of freedom reaches to hundreds
    two = role("two", [2, 9])
    assert two.life.upper[0] > 50
    assert plot_remaining([two]).axes[0].get_ylim()[1] < 20


def test_a_missing_band_leaves_the_line():
    whole = role()
    half = replace(whole.life, lower=np.where(np.arange(21) > 9, np.nan, whole.life.lower))
    axes = plot_remaining([replace(whole, life=half)]).axes[0]
    reach = max(path.vertices[:, 0].max() for path in axes.collections[0].get_paths())
    assert reach == 9
    none = replace(whole.life, lower=whole.life.lower * np.nan, upper=whole.life.upper * np.nan)
    assert plot_remaining([replace(whole, life=none)]).axes[0].lines


def test_roles_without_an_end_are_named_below():
    new = RoleLife.of("new", Histogram.from_turns([3], [False]))
    figure = plot_remaining([role(), new])
    assert "No ended turn yet: new." in figure.get_supxlabel().replace("\n", " ")
    with pytest.raises(InputError, match="no role has a turn that ended"):
        plot_remaining([new])


@pytest.mark.parametrize(
    ("ending", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")]
)
def test_pictures_are_saved_by_their_ending(tmp_path, ending, magic):
    target = save_figure(plot_remaining([role()]), tmp_path / f"m.{ending}")
    assert target.read_bytes().startswith(magic)


def test_other_endings_and_missing_folders_are_refused(tmp_path):
    figure = plot_remaining([role()])
    with pytest.raises(InputError, match=r"save: not a type of picture .*png, \.svg, \.pdf"):
        save_figure(figure, tmp_path / "m.xlsx")
    with pytest.raises(InputError, match=r"nowhere.m\.png: the picture can't be written"):
        save_figure(figure, tmp_path / "nowhere" / "m.png")


def test_a_notebook_shows_it():
    assert plot_remaining([role()])._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("wrong", "message"), [({"until_age": 0}, "until_age"), ({"unit": "tokens"}, "unit")]
)
def test_wrong_parameters_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        plot_remaining([role()], **wrong)


def test_drawing_needs_no_display_and_leaves_no_global_state():
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from estimator.plots import plot_remaining;"
        "from estimator.note_table import RoleLife; from estimator.histogram import Histogram;"
        "plot_remaining([RoleLife.of('dev', Histogram.from_turns([3, 4], [True, True]))])"
        "._repr_png_();"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(REPO)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "False\n", done.stderr
