"""Names what is wrong with a plan or its proof."""


class Disproved(Exception):
    """A plan does not show what it says; the text is one sentence that names the first thing wrong."""
