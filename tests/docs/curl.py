"""A stand-in for `curl` on machines that have none: the few options that the pages use, and no others."""

import argparse
import sys
import urllib.error
import urllib.request

HTTP_ERROR = 22  # what curl ends with where --fail-with-body was given


def main() -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("url")
    for silent in ("-s", "-S", "-N"):
        parser.add_argument(silent, action="store_true")
    parser.add_argument("--fail-with-body", action="store_true")
    parser.add_argument("-w", default="")
    parser.add_argument("-H", action="append", default=[])
    parser.add_argument("-d")
    parser.add_argument("-X")
    given = parser.parse_args()
    headers = dict(header.split(": ", 1) for header in given.H)
    if given.d is not None:
        headers = {"Content-Type": "application/x-www-form-urlencoded"} | headers
    method = given.X or ("GET" if given.d is None else "POST")
    request = urllib.request.Request(given.url, given.d and given.d.encode(), headers, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            status, body = answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        with refused:
            status, body = refused.code, refused.read()
    sys.stdout.write(body.decode() + given.w.replace("\\n", "\n"))
    return HTTP_ERROR if given.fail_with_body and status >= 400 else 0


if __name__ == "__main__":
    sys.exit(main())
