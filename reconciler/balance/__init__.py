"""How evenly clusters carry their load, now and after a plan: PySpark DataFrames from samples to figures."""
