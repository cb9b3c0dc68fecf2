"""Topic files of other tools -> topics as we declare them, and what of them has no counterpart here."""
