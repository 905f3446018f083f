"""Telling people: the words of a notice, and its way out through Apprise, which knows a hundred services by one URL
each.

Whoever may make a channel names an address, and Apprise resolves, connects and follows redirects by itself. So a notice
is sent by a thread that is watched: a connection is made only to what `foliot.outbound` lets `http` jobs call, a file
is read only from Python's own folders, and no program is started. The watch sits where Python opens a socket or a file,
after every look-up and every redirect. A library that opened them in C by itself, or in a thread of its own, would pass
by; none that is needed here does.
"""

from foliot.alerts.sender import BadChannel, Sender
from foliot.alerts.text import Words, test_words, words_of

__all__ = ["BadChannel", "Sender", "Words", "test_words", "words_of"]
