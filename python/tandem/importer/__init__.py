"""Writes a PyTorch module as a folder that Tandem trains (docs/import.md). Needs torch alone."""
