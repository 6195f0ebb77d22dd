"""Frozen Hugging Face models seen through a few edit points."""
