"""How a run fails: as the exit codes of the commands, 2, 3 and 4."""


class ConfigError(ValueError):
    """What is wrong with the scenario: a line for each error, with its place, and what is allowed."""


class DoesNotFit(MemoryError):
    """What, where, how many bytes, and what would fit."""


class DeviceError(RuntimeError):
    """A device or the system failed: which command, and what to do next."""


for _error in (ConfigError, DoesNotFit, DeviceError):
    _error.__module__ = "tandem"  # what people import them from
