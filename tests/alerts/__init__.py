"""Telling people: the words of a notice, and its way out."""
