"""Text of others (a kernel's message, a name in a suite) made harmless for a terminal."""


def printable(text: str) -> str:
    """Return the text without characters that could move the cursor or colour the terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " if char.isspace() else "\ufffd" for char in text)
