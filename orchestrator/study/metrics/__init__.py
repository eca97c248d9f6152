"""Measures of a negotiation, at every decision: how good, how fair, how given way, at what cost.

Pure functions over arrays of utilities ``[seats, candidates]``, one idea a file; `table` reads a
trace and makes rows and a summary of them, `moments` and `regret` go back to the world itself.
"""
