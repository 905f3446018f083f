"""What may go wrong around Foliot, made to happen."""
