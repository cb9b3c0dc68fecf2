"""Finds the strongest rules that an observed cluster keeps, so that declaring them changes nothing."""
