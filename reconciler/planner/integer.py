"""Solves integer programs (CP-SAT) so that each machine finds the same: one worker, one seed, a limit in steps."""

from ortools.sat.python import cp_model

FOUND = frozenset({cp_model.OPTIMAL, cp_model.FEASIBLE})
"""How a search ends that has a solution: proved the best, or the best so far."""


def solved(
    model: cp_model.CpModel, effort: float, *, seed: int = 1, gap: float = 0.0, is_presolved: bool = True
) -> tuple[cp_model.CpSolverStatus, cp_model.CpSolver]:
    """Return how the search ended, and the solver with the best solution found.

    `effort` is CP-SAT's deterministic time, which is counted in steps: about as many seconds. `gap`: a solution that is
    proved this near to the best, in parts of it, is good enough. `is_presolved`: the model is simplified first.
    """
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = effort
    solver.parameters.relative_gap_limit = gap
    solver.parameters.cp_model_presolve = is_presolved
    return solver.solve(model), solver
