"""Run time: which variant answers a call, and why."""
