"""Data derived from finished runs: lineage, segments, snapshots, exports; and its removal."""
