"""What cannot be imported, said with the module's path, the operator and advice. Must not know what is traced."""


class Refusal(Exception):
    """`where`: a module's path, or what was asked for; `problem`; `advice`: what to do instead."""

    def __init__(self, where, problem, advice):
        super().__init__(f"{where or 'the module'}: {problem}; {advice}")


class CurrentModule:
    """Which submodule's forward is running, so that what fails in it can be told by its path."""

    def __init__(self, module):
        self.stack, self.deepest, self._hooks = [], "", []
        self.changed = lambda: None
        for path, child in module.named_modules():
            if not path:
                continue
            self._hooks.append(child.register_forward_pre_hook(self._enter(path)))
            self._hooks.append(child.register_forward_hook(self._leave))

    def _enter(self, path):
        def hook(*_):
            self.stack.append(path)
            self.deepest = path
            self.changed()

        return hook

    def _leave(self, *_):
        self.stack.pop()
        self.deepest = self.stack[-1] if self.stack else ""
        self.changed()

    def remove(self):
        for hook in self._hooks:
            hook.remove()
