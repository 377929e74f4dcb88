"""The solver against sums over sequences, a plain recursion, closed forms and a simulation."""

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest

from policy.rules.life import Life
from policy.rules.setting import Setting
from policy.stopping import Problem, solve

ORACLES = json.loads(
    (Path(__file__).parents[2] / "data" / "oracles_stopping.json").read_text("utf-8")
)


def setting_of(**changes):
    """r = .1, w = 1.25, o = 5; X′ = 34k of which 18k stay cached; g = 1k, no window, one turn."""
    values = {
        "read_weight": 0.1,
        "write_weight": 1.25,
        "output_weight": 5.0,
        "context_after_tokens": 34_000.0,
        "cached_after_tokens": 18_000.0,
        "summary_output_tokens": 6_000.0,
        "instruction_tokens": 500.0,
        "growth_tokens": 1_000.0,
        "first_growth_tokens": 1_000.0,
    }
    return Setting(**(values | changes))


def bare_setting(after, growth, window, slope, fixed, **changes):
    """Only reading costs anything: r per token, C(b) = slope·b + fixed."""
    values = {
        "read_weight": 1.0,
        "write_weight": 0.0,
        "context_after_tokens": after,
        "cached_after_tokens": after,
        "summary_output_tokens": 0.0,
        "growth_tokens": growth,
        "first_growth_tokens": growth,
        "window_tokens": window,
    }
    return setting_of(**(values | changes)).with_linear_call(slope, fixed)


def hazards_of(mass):
    left, hazards = 1.0, []
    for share in mass:
        hazards.append(min(1.0, share / left))
        left -= share
    return [*hazards[:-1], 1.0]


BRUTE = ORACLES["dp_brute_force_8"]
MASS = BRUTE["input"]["pmf_N_1_to_8"]


def expected_cost(actions, mass=MASS, start=6):
    """What a sequence of compact (1) and wait (0) costs: r·b per request, b + 3 per compaction."""
    total, context, alive = 0.0, start, 1.0
    for action, share in zip(actions, mass, strict=True):
        if action:
            total, context = total + alive * (context + 3), 2
        total += alive * context
        alive, context = alive - share, context + 1
    return total


def test_the_best_of_all_sequences():
    life = Life.of_hazards(hazards_of(MASS))
    assert life.expected == pytest.approx(BRUTE["expected"]["m"])
    costs = {actions: expected_cost(actions) for actions in itertools.product((0, 1), repeat=8)}
    best = min(costs.values())
    assert best == pytest.approx(BRUTE["expected"]["value"])
    found = solve([Problem(life, bare_setting(2.0, 1.0, 60.0, 1.0, 3.0))], keep_ages=True)[0]
    assert found.value(found.by_age[0], 6.0) == pytest.approx(best, rel=1e-9)
    context, followed = 6.0, []
    for threshold in found.at_call[:8]:
        compact = threshold is not None and context >= threshold
        followed.append(int(compact))
        context = 3.0 if compact else context + 1.0
    assert costs[tuple(followed)] == pytest.approx(best)
    assert followed == BRUTE["expected"]["first_best_policy"]


def test_the_best_of_all_sequences_of_random_lives():
    draw = random.Random(5)
    problems, starts, bests = [], [], []
    for _ in range(20):
        raw = [draw.random() ** 2 for _ in range(8)]
        mass = [share / sum(raw) for share in raw]
        start = draw.randint(3, 20)
        bests.append(
            min(
                expected_cost(actions, mass, start)
                for actions in itertools.product((0, 1), repeat=8)
            )
        )
        starts.append(float(start))
        life = Life.of_hazards(hazards_of(mass))
        problems.append(Problem(life, bare_setting(2.0, 1.0, 60.0, 1.0, 3.0)))
    for found, start, best in zip(solve(problems), starts, bests, strict=True):
        assert found.value(found.warm, start) == pytest.approx(best, rel=1e-9)


def test_the_geometric_renewal():
    case = ORACLES["dp_renewal_geometric"]
    life = Life((float(case["input"]["mean"]),), (1.0,))
    setting = bare_setting(13_000.0, 1_500.0, 200_000.0, 0.1, 18_750.0, read_weight=0.1)
    found = solve([Problem(life, setting)])[0]
    assert found.warm[0] == pytest.approx(case["expected"]["value"], abs=case["tolerance"])
    n = case["expected"]["n_star"]
    for threshold in found.at_call:
        assert 13_000 + 1_500 * (n - 1) < threshold <= 13_000 + 1_500 * n


@pytest.mark.parametrize("fixed", ORACLES["b_star_table"]["input"]["K0"])
def test_the_published_thresholds_lie_within_one_growth(fixed):
    published = ORACLES["b_star_table"]["expected"][str(fixed)]
    setting = bare_setting(13_000.0, 1_500.0, 700_000.0, 0.1, float(fixed), read_weight=0.1)
    problems = [Problem(Life((float(m),), (1.0,)), setting) for m in published]
    for found, context in zip(solve(problems), published.values(), strict=True):
        wanted = 266_500 if context is None else context
        assert wanted - 1_500 < found.at_call[-1] <= wanted


class PlainRecursion:
    """The model's equations, written out for whole steps of growth and iterated in plain Python."""

    def __init__(self, problem, *, top, sweeps=400):
        self.problem, self.top, setting = problem, top, problem.setting
        self.steps = range(top + 1)
        self.after, self.growth = setting.after_tokens, setting.growth_tokens
        self.first = round(setting.first_growth_tokens / setting.growth_tokens)
        self.stay = list(problem.life.go_on)
        ages = len(self.stay)
        self.warm = [[0.0] * (top + 1) for _ in range(ages + 1)]
        self.cold, self.end = [0.0] * (top + 1), [0.0] * (top + 1)
        for _ in range(sweeps):
            self.sweep(setting, ages)

    def context(self, step):
        return self.after + self.growth * step

    def at(self, values, step):
        return values[min(step, self.top)]

    def sweep(self, s, ages):
        r = (1 - s.miss_probability) * s.read_weight + s.miss_probability * s.write_weight
        w, after = s.write_weight, self.after
        written = after - s.cached_after_tokens
        recache = (w - r) * written
        for age in reversed(range(ages)):
            steps, stay = (1, self.stay[age]) if age else (self.first, self.stay[0])
            growth = self.growth * steps
            # The last age is its own successor.
            following = self.warm[min(age + 1, ages - 1)]

            def follows(step, steps=steps, stay=stay, following=following):
                ended = self.at(self.end, step + steps)
                return stay * self.at(following, step + steps) + (1 - stay) * ended

            for step in self.steps:
                b = self.context(step)
                wait = r * b + w * growth + follows(step)
                call = self.call(s, b)
                compact = call + r * s.cached_after_tokens + w * (written + growth) + follows(0)
                self.warm[age][step] = self.better(s, step, growth, wait, compact)
                if age == 0:
                    wait = w * (b + growth) + follows(step)
                    compact = self.cold_call(s, b) + w * (after + growth) + follows(0)
                    self.cold[step] = self.better(s, step, growth, wait, compact)
        for step in self.steps:
            self.end[step] = self.ended(s, step, recache)

    def better(self, s, step, growth, wait, compact):
        if not step:
            return wait
        full = s.window_tokens is not None and (
            self.context(step) + growth + s.summary_output_tokens > s.window_tokens
        )
        return compact if full else min(wait, compact)

    @staticmethod
    def call(s, b):
        sent = (1 - s.miss_probability) * s.read_weight + s.miss_probability
        fixed = s.instruction_tokens + s.output_weight * s.summary_output_tokens
        return sent * b + fixed + s.quality_cost

    @staticmethod
    def cold_call(s, b):
        fixed = s.instruction_tokens + s.output_weight * s.summary_output_tokens
        return b + fixed + s.quality_cost

    def ended(self, s, step, recache):
        goes_on, cold = s.resume_probability, s.cold_probability
        asked = self.problem.asked_share
        call = self.call(s, self.context(step))

        def waits(at):
            return goes_on * ((1 - cold) * self.warm[0][at] + cold * self.cold[at])

        def later(at):
            if asked is None or not at:
                return waits(at)
            early = goes_on * (1 - asked) * self.warm[0][at]
            left = goes_on * (asked - cold) * self.warm[0][at] + goes_on * cold * self.cold[at]
            shrunk = (goes_on * asked + 1 - goes_on) * self.call(s, self.context(at))
            shrunk += goes_on * (asked - cold) * (self.warm[0][0] + recache)
            return early + min(left, shrunk + goes_on * cold * self.cold[0])

        now = call + later(0) + goes_on * (1 - cold) * recache
        return min(later(step), now) if step else later(0)


def random_problem(draw):
    ages = draw.randint(2, 4)
    hazards = [draw.uniform(0.1, 0.9) for _ in range(ages)]
    growth = draw.choice([500.0, 1_000.0, 4_000.0])
    cold = draw.uniform(0, 0.8)
    setting = setting_of(
        read_weight=draw.choice([0.0, 0.05, 0.1, 0.3]),
        context_after_tokens=20_000.0,
        cached_after_tokens=draw.choice([0.0, 12_000.0]),
        summary_output_tokens=draw.choice([0.0, 1_000.0]),
        growth_tokens=growth,
        first_growth_tokens=growth * draw.choice([0, 1, 3]),
        window_tokens=20_000 + 40 * growth,
        miss_probability=draw.choice([0.0, 0.1]),
        resume_probability=draw.choice([0.0, 0.4, 0.7]),
        cold_probability=cold,
        rework_tokens=draw.choice([0.0, 3_000.0]),
        quality_cost=draw.choice([0.0, 2_000.0]),
    )
    asked = draw.choice([None, cold, cold + (1 - cold) * draw.random()])
    return Problem(Life.of_hazards(hazards), setting, asked)


def test_the_values_are_those_of_the_plain_recursion():
    draw = random.Random(6)
    problems = [random_problem(draw) for _ in range(24)]
    for problem, found in zip(problems, solve(problems, tolerance=1e-6), strict=True):
        plain = PlainRecursion(problem, top=44, sweeps=120)
        # Whole growths up to the limit; past it both are only ever compacted.
        contexts = [plain.context(step) for step in range(35)]
        for ours, theirs in (
            (found.warm, plain.warm[0]),
            (found.cold, plain.cold),
            (found.turn_end, plain.end),
        ):
            mine = [found.value(ours, context) for context in contexts]
            assert mine == pytest.approx(theirs[:35], rel=1e-6, abs=1e-3), problem


def test_side_by_side_is_the_same_as_alone():
    draw = random.Random(7)
    problems = [random_problem(draw) for _ in range(60)]
    for problem, found in zip(problems, solve(problems, tolerance=1e-3), strict=True):
        alone = solve([problem], tolerance=1e-3)[0]
        for ours, theirs in (
            (found.at_call, alone.at_call),
            ((found.at_turn_end, found.at_resume, found.at_idle),
             (alone.at_turn_end, alone.at_resume, alone.at_idle)),
        ):  # fmt: skip
            assert [at is None for at in ours] == [at is None for at in theirs]
            both = [(a, b) for a, b in zip(ours, theirs, strict=True) if a is not None]
            assert all(a == pytest.approx(b, abs=2.0) for a, b in both), problem


def simulate(problem, found, sessions, seed):
    """Play sessions by the thresholds, from X′ on a warm cache; return what each cost."""
    draw, s = np.random.default_rng(seed), problem.setting
    r, w, after = s.mean_read_weight, s.write_weight, s.after_tokens
    written = after - s.cached_after_tokens
    stay = np.array(problem.life.go_on)
    call = np.array([np.inf if at is None else at for at in found.at_call])
    end, resume, asked_at = (
        np.inf if at is None else at for at in (found.at_turn_end, found.at_resume, found.at_idle)
    )
    context, age = np.full(sessions, after), np.zeros(sessions, dtype=int)
    cached = context.copy()  # what of the context the next request finds in the cache
    total, alive = np.zeros(sessions), np.ones(sessions, dtype=bool)
    while alive.any():
        growth = np.where(age == 0, s.first_growth_tokens, s.growth_tokens)
        cold = cached == 0
        threshold = np.where(cold, resume, call[np.minimum(age, len(call) - 1)])
        compact = alive & (context >= threshold)
        reading = np.where(cold, s.cold_summary_slope, s.summary_slope)
        total += np.where(compact, reading * context + s.summary_intercept, 0.0)
        cached = np.where(compact, np.where(cold, 0.0, after - written), cached)
        context = np.where(compact, after, context)
        total += np.where(alive, r * cached + w * (context - cached + growth), 0.0)
        context = context + growth
        cached = context.copy()
        age += 1
        over = alive & (draw.random(sessions) >= stay[np.minimum(age - 1, len(stay) - 1)])
        age[over] = 0
        # The end of the turn, the pause, and the question just before the cache expires.
        compact = over & (context >= end)
        pause = draw.random(sessions)
        goes_on = draw.random(sessions) < s.resume_probability
        late = goes_on & (pause < s.cold_probability)
        if problem.asked_share is not None:
            there = ~goes_on | (pause < problem.asked_share)
            compact |= over & there & (context >= asked_at)
        total += np.where(compact, s.summary_slope * context + s.summary_intercept, 0.0)
        cached = np.where(compact, after - written, cached)
        context = np.where(compact, after, context)
        cached[over & late] = 0.0
        alive &= ~over | goes_on
    return total


@pytest.mark.parametrize("asked_share", [None, 0.4, 0.6])
def test_a_simulation_of_the_two_levels_agrees(asked_share):
    # Growth in whole steps, so that every context played is a point of the grid.
    setting = setting_of(
        first_growth_tokens=3_000.0, resume_probability=0.85, cold_probability=0.4,
        context_after_tokens=30_000.0, cached_after_tokens=12_000.0, quality_cost=1_000.0,
    )  # fmt: skip
    life = Life.of_hazards([0.3, 0.15, 0.1, 0.08, 0.06])
    problem = Problem(life, setting, asked_share)
    found = solve([problem])[0]
    costs = simulate(problem, found, 15_000, 9)
    error = costs.std() / np.sqrt(costs.size)
    assert error < 0.01 * costs.mean()
    assert abs(costs.mean() - found.warm[0]) < 3 * error
    # Somewhere all that is to be decided was decided both ways.
    assert found.at_turn_end is not None or asked_share is not None


def test_other_thresholds_cost_more():
    setting = setting_of(resume_probability=0.85, cold_probability=0.4)
    life = Life.of_hazards([0.3, 0.15, 0.1, 0.08, 0.06])
    problem = Problem(life, setting)
    found = solve([problem])[0]
    best = simulate(problem, found, 4_000, 10)

    class Moved:
        def __init__(self, **changes):
            for name in ("at_call", "at_turn_end", "at_resume", "at_idle"):
                setattr(self, name, changes.get(name, getattr(found, name)))

    for changes in (
        {"at_turn_end": None},
        {"at_turn_end": found.at_turn_end + 12_000},
        {"at_turn_end": found.at_turn_end - 12_000},
        {"at_call": tuple(at and at - 20_000 for at in found.at_call)},
        {"at_call": tuple(at and at + 40_000 for at in found.at_call)},
    ):
        # The same draws, so that most of the noise cancels.
        other = simulate(problem, Moved(**changes), 4_000, 10)
        worse = other - best
        assert worse.mean() > -2 * worse.std() / np.sqrt(worse.size), changes


def test_sessions_that_hardly_end_and_turns_that_hardly_end_have_values():
    setting = setting_of(resume_probability=1.0, cold_probability=0.3)
    for life in (Life((1e300,), (1.0,)), Life.of_hazards([1.0]), Life.of_hazards([0.5, 0.01])):
        found = solve([Problem(life, setting)])[0]
        assert np.isfinite(found.warm).all()
        assert all(at is None or 34_000 < at < 1e6 for at in found.at_call)


def test_one_turn_more_or_less_is_all_that_q_s_means():
    # Turns of one request: E = q_s·V_0, so with g = 0 the session is geometric at 1/(1 − q_s).
    changes = {"growth_tokens": 0.0, "first_growth_tokens": 0.0, "window_tokens": 400_000.0}
    one = solve([Problem(Life((20.0,), (1.0,)), setting_of(**changes))])[0]
    many = solve(
        [Problem(Life.of_hazards([1.0]), setting_of(resume_probability=0.95, **changes))],
        tolerance=1e-6,
    )[0]
    assert many.warm == pytest.approx(one.warm, rel=1e-6)
    assert many.at_call[0] == pytest.approx(one.at_call[0], abs=1.0)
