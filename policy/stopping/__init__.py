"""Optimal stopping: what waiting and compacting cost, all that follows included, on a grid.

Per role and price set, V_i(b) before request i + 1 on a warm cache, V_c(b) before the first one
on a cold cache, E(b) at the end of a turn. Given E, the ages are solved backwards from the tail,
where the hazard is constant and V is its own successor; E is a fixed point over turns. Problems
are solved side by side, contexts along the first axis and problems along the last.
Reference: the model, §4, rule `renewal`; docs/rules.md for the recursion of `idle`.
"""

from policy.stopping.problem import Problem, Solution
from policy.stopping.solver import solve

__all__ = ["Problem", "Solution", "solve"]
