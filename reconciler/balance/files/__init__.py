"""Reads and writes samples, tables and result folders; pyarrow is loaded here."""
