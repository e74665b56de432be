"""How a command or a run fails: as the exit codes 2, 3 and 4, with what the command prints."""


class ConfigError(ValueError):
    """What is wrong with the scenario: a line for each error, with its place, and what is allowed."""


class DoesNotFit(MemoryError):
    """What, where, how many bytes, and what would fit."""


class DeviceError(RuntimeError):
    """A device or the system failed: which command, and what to do next."""


class PolicyError(RuntimeError):
    """A policy written in Python decided what the scheduler does not allow: what, and of which op or value."""


for _error in (ConfigError, DoesNotFit, DeviceError, PolicyError):
    _error.__module__ = "tandem"  # what people import them from
