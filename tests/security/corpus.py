"""Texts that would run, break a line, a table, a header or a query somewhere, if they were not handled as mere text."""

import re

ESCAPE = "\x1b"
TEXTS = (
    # pages
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'-alert(1)-'",
    "</style><svg/onload=alert(1)>",
    "javascript:alert(1)",
    "&lt;b&gt;&#x3c;",
    "<!--",
    "]]>",
    # queries
    "' OR '1'='1",
    "'; DROP TABLE jobs; --",
    '" OR 1=1 --',
    "1); SELECT pg_sleep(10); --",
    "%' ESCAPE '!",
    "\\'; --",
    "$1",
    "{1,2}",
    # lines of a log, a terminal, a header
    "a\nERROR forged line",
    "a\r\nSet-Cookie: forged=1",
    "a\rb",
    "a\tb",
    f"{ESCAPE}[31mred{ESCAPE}[0m",
    f"{ESCAPE}]0;title\x07",
    f"{ESCAPE}]8;;http://evil.example{ESCAPE}\\link{ESCAPE}]8;;{ESCAPE}\\",
    f"{ESCAPE}[2J{ESCAPE}[H",
    "\x9b31mC1",
    "\x08\x08\x08back",
    "\x7f",
    "a\x00b",
    "\x85next line",
    # sheets
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(1)",
    '=HYPERLINK("http://evil.example")',
    'a,b"c;d',
    # templates and formats
    "{{7*7}}",
    "${7*7}",
    "#{7*7}",
    "%s%s%n",
    "{0.__class__}",
    "[bold red]x[/]",
    ":smile:",
    "`id`",
    "$(id)",
    # paths
    "../../etc/passwd",
    "..\\..\\windows",
    "/etc/passwd",
    "file:" + "//" + "/etc/passwd",
    ".",
    "..",
    # unicode
    "\u202egpj.exe",
    "\u2066x\u2069",
    "a\u2028b\u2029c",
    "\ufeffbom",
    "\u200bzero\u200dwidth",
    "e\u0301" * 20,
    "\U0001f469\u200d\U0001f4bb",
    "\uff1cscript\uff1e",
    "\ufffe",
    # names of things
    "__proto__",
    "constructor",
    "__class__",
    "null",
    "true",
    "NaN",
    "-0",
    "9" * 30,
    " ",
    "x" * 200,
)

BREAKS_A_LINE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
