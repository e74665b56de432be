"""Training in the process that has torch: the loop, the placement and the policy are Tandem's, the batches Python's."""
from .result import Metrics, Result
from .train import train

__all__ = ["Metrics", "Result", "train"]
