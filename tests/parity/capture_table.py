"""Captures the zoo, runs each step in the compiled executor, compares it with eager.

    python tests/parity/capture_table.py [NAME ...] [--write docs/capture_table.md]
"""
