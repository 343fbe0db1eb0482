"""Ratios against peers. Each file here measures one thing; `python -m benchmarks` runs them all."""
