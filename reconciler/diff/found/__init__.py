"""An observed cluster -> the strongest rules that it keeps, so that declaring them changes nothing."""
