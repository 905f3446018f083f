"""An identity provider as a process of its own, and what its tokens open here."""
