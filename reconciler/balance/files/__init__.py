"""Samples, tables and result folders on disk; pyarrow is loaded here."""
