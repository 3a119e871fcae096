"""What cannot be said in v1 at all."""


class NotConvertibleError(ValueError):
    """The object has no v1 equivalent. The message names the field and what to do about it."""
