"""Tandem in Python: `train` trains a scenario or a PyTorch module in this process (docs/python.md), `tandem.importer`
writes a module as a folder that Tandem trains (docs/import.md) and needs torch alone.
"""
__all__ = ["ConfigError", "DeviceError", "DoesNotFit", "Metrics", "Result", "train"]


def __getattr__(name):
    """What trains is loaded when it is first asked for: an import of a module needs none of it."""
    if name not in __all__:
        raise AttributeError(f"module 'tandem' has no attribute {name!r}")
    if name in ("ConfigError", "DeviceError", "DoesNotFit"):
        from .training import errors
        return getattr(errors, name)
    from . import training
    return getattr(training, name)
