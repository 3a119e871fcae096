"""Linear programs as arrays, and the solver (HiGHS) behind them."""
