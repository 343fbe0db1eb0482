"""Tests of forgetting and retention."""
