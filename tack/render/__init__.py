"""Renderers: what a target can do, and how its source is written."""
