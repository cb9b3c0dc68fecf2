"""Plan, snapshot and desired state -> the same lower bound again, by plain sums; it shares no code with the planner."""
