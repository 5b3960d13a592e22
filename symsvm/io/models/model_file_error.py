"""ModelFileError: what is wrong with a model file, or with writing a model to one, in one sentence."""

__all__ = ["ModelFileError"]


class ModelFileError(ValueError):
    """A model file that cannot be read, or a model that a format cannot hold.

    >>> print(ModelFileError("m.libsvm", "gamma must be positive, got -1.0.", line=3))
    m.libsvm, line 3: gamma must be positive, got -1.0.
    """

    def __init__(self, path, sentence, *, line=None):
        self.path, self.line = path, line
        sentence = " ".join(sentence.split())  # what it quotes from a file may have lines
        super().__init__(f"{path}{'' if line is None else f', line {line}'}: {sentence}")
