"""GitHub's REST API, as far as a report needs it: the only module that talks to the network.

Source: GitHub REST API documentation, version 2022-11-28: rate limits, pagination, check runs,
issue comments.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Protocol

import requests

from ci.report.errors import GitHubError
from ci.results.codec import Json

COMMENTER = "github-actions[bot]"
"""Author of the comments that a workflow's own token writes; nobody else's is ever edited."""

_TRIES = 5
_MOST_WAITING_S = 300.0
"""For all requests together: the verdict stands in the log, so a job need not hang for GitHub."""
_BETWEEN_WRITES_S = 1.0
_UNKNOWN_LIMIT_WAIT_S = 60.0
_MOST_PAGES = 100
_PAGE = "per_page=100"
_TIMEOUT_S = (10.0, 60.0)
_FORBIDDEN, _TOO_MANY, _SERVER_ERROR, _ERROR, _MOVED = 403, 429, 500, 400, 300


class Clock(Protocol):
    """Time, so that tests need none."""

    def now_s(self) -> float:
        """Return the seconds since 1970, UTC."""

    def wait(self, seconds: float) -> None:
        """Return after ``seconds``."""


class SystemClock:
    """The machine's own clock."""

    def now_s(self) -> float:
        """Return the seconds since 1970, UTC."""
        return datetime.now(UTC).timestamp()

    def wait(self, seconds: float) -> None:
        """Return after ``seconds``."""
        time.sleep(seconds)


class _PassingError(GitHubError):
    """A failure of the server or the line: the request may or may not have been carried out."""


class GitHub:
    """One repository, as one token sees it."""

    def __init__(self, *, api: str, repository: str, token: str, clock: Clock) -> None:
        """Speak for ``repository`` (``owner/name``) to the API at the address ``api``."""
        self._api = api.rstrip("/")
        self._repo = f"{self._api}/repos/{repository}"
        self._clock = clock
        self._last_write_s = 0.0
        self._waited_s = 0.0
        self._session = requests.Session()
        self._session.headers.update(
            {
                "Accept": "application/vnd.github+json",
                "Authorization": f"Bearer {token}",
                "X-GitHub-Api-Version": "2022-11-28",
                "User-Agent": "flopwatch",
            }
        )

    def pull_head_and_base(self, number: int) -> tuple[str, str]:
        """Return the full hashes of a pull request's head and of the tip it goes to.

        Raises:
            GitHubError: GitHub refused, or could not be reached.
        """
        pull = self._json("GET", f"{self._repo}/pulls/{number}")
        return _required(pull, "head", "sha"), _required(pull, "base", "sha")

    def merge_base(self, base: str, head: str) -> str:
        """Return the full hash of the commit at which ``head`` left ``base``.

        Raises:
            GitHubError: GitHub refused, or could not be reached.
        """
        url = f"{self._repo}/compare/{base}...{head}?per_page=1"
        compared = self._json("GET", url)
        return _required(compared, "merge_base_commit", "sha")

    def put_comment(self, pull: int, marker: str, body: str) -> None:
        """Write ``body`` as the only comment that starts with ``marker``.

        Raises:
            GitHubError: GitHub refused, or could not be reached.
        """
        url = f"{self._repo}/issues/{pull}/comments"
        content: Mapping[str, Json] = {"body": body}
        found = self._find_or_create(lambda: self._comments(url, marker), url, content)
        for first in found[:1]:
            self._send("PATCH", f"{self._repo}/issues/comments/{first}", content)
        for extra in found[1:]:
            self._send("DELETE", f"{self._repo}/issues/comments/{extra}")

    def put_check(self, updates: Iterable[Mapping[str, Json]]) -> None:
        """Write a check run: over the pending one of its name and external id if there is one.

        Args:
            updates: The check run, then updates that each append more annotations.

        Raises:
            GitHubError: GitHub refused, or could not be reached.
        """
        url = f"{self._repo}/check-runs"
        number: int | None = None
        for update in updates:
            if number is None:
                number = next(iter(self._pending_checks(update)), None)
            if number is None:
                # One too many after a lost answer does no harm: GitHub shows the newest.
                number = _number(_document(self._send("POST", url, update)), "id")
            else:
                changed = {key: value for key, value in update.items() if key != "head_sha"}
                self._send("PATCH", f"{url}/{number}", changed)

    def _comments(self, url: str, marker: str) -> list[int]:
        """Return the ids of our comments with this marker, oldest first."""
        return [
            _number(item, "id")
            for item in self._pages(f"{url}?{_PAGE}")
            if _text(item, "user", "login") == COMMENTER
            and _text(item, "body").partition("\n")[0].strip() == marker
        ]

    def _pending_checks(self, check: Mapping[str, Json]) -> list[int]:
        """Return the ids of the commit's unfinished check runs that are this one."""
        url = f"{self._repo}/commits/{check['head_sha']}/check-runs?status=in_progress&{_PAGE}"
        return [
            _number(item, "id")
            for item in self._pages(url, "check_runs")
            if all(_at(item, key) == check[key] for key in ("name", "external_id"))
        ]

    def _pages(self, url: str, key: str = "") -> Iterator[Json]:
        """Yield the items of a list, page after page as GitHub links them."""
        for _ in range(_MOST_PAGES):
            answer = self._send("GET", url)
            document = _document(answer)
            items = _at(document, key) if key else document
            yield from items if isinstance(items, list) else []
            url = answer.links.get("next", {}).get("url", "")
            if not url:
                return
            if not url.startswith(f"{self._api}/"):
                msg = f"next page {url}: expected an address below {self._api} (not followed)"
                raise GitHubError(msg)

    def _find_or_create(
        self, find: Callable[[], list[int]], url: str, body: Mapping[str, Json]
    ) -> list[int]:
        """Return the ids that ``find`` finds; create the thing and return none if it finds none.

        A server that fails may have created it all the same, so it is looked for again.
        """
        for left in reversed(range(_TRIES)):
            if found := find():
                return found
            try:
                self._once("POST", url, body)
            except _PassingError:
                if not left:
                    raise
                self._wait(2.0 ** (_TRIES - left), f"POST {url}")
            else:
                return []
        return []

    def _json(self, method: str, url: str) -> Json:
        return _document(self._send(method, url))

    def _send(
        self, method: str, url: str, body: Mapping[str, Json] | None = None
    ) -> requests.Response:
        """Send what may be sent twice, again after failures that may pass."""
        for left in reversed(range(_TRIES)):
            try:
                return self._once(method, url, body)
            except _PassingError:
                if not left:
                    raise
                self._wait(2.0 ** (_TRIES - left), f"{method} {url}")
        msg = f"{method} {url}: not tried"
        raise GitHubError(msg)

    def _once(
        self, method: str, url: str, body: Mapping[str, Json] | None = None
    ) -> requests.Response:
        """Send one request, again only where GitHub says it was not carried out for its rate."""
        longest_s = _UNKNOWN_LIMIT_WAIT_S
        while True:
            if method != "GET":
                self._clock.wait(
                    max(0.0, self._last_write_s + _BETWEEN_WRITES_S - self._clock.now_s())
                )
                self._last_write_s = self._clock.now_s()
            answer = self._exchange(method, url, body)
            wait_s = self._limited_s(answer, longest_s)
            if wait_s is None:
                return _accepted(answer, method, url)
            longest_s *= 2
            self._wait(wait_s, f"{method} {url}")

    def _exchange(
        self, method: str, url: str, body: Mapping[str, Json] | None
    ) -> requests.Response:
        try:
            return self._session.request(
                method,
                url,
                json=body,
                timeout=_TIMEOUT_S,
                # A redirected POST would arrive as a GET.
                allow_redirects=method == "GET",
            )
        except requests.RequestException as error:
            msg = f"{method} {url}: {error} (is the network up? run the job again)"
            raise _PassingError(msg) from error

    def _limited_s(self, answer: requests.Response, unknown_s: float) -> float | None:
        """Return how long to wait for the rate limit (s); None if the answer is not about it."""
        if answer.status_code not in {_FORBIDDEN, _TOO_MANY}:
            return None
        headers = answer.headers
        if headers.get("Retry-After", "").isdecimal():
            return float(headers["Retry-After"])
        if headers.get("X-RateLimit-Remaining") == "0":
            reset = headers.get("X-RateLimit-Reset", "")
            return max(1.0, float(reset) - self._clock.now_s()) if reset.isdecimal() else unknown_s
        about_rate = answer.status_code == _TOO_MANY or "rate limit" in answer.text.lower()
        return unknown_s if about_rate else None

    def _wait(self, seconds: float, what: str) -> None:
        self._waited_s += seconds
        if self._waited_s > _MOST_WAITING_S:
            msg = (
                f"{what}: GitHub asks for a wait of {seconds:.0f} s, more than the "
                f"{_MOST_WAITING_S:.0f} s a report may wait in all (run the job again later)"
            )
            raise GitHubError(msg)
        self._clock.wait(seconds)


def _accepted(answer: requests.Response, method: str, url: str) -> requests.Response:
    """Return the answer if GitHub did what it was asked to."""
    status = answer.status_code
    if status < _MOVED:
        return answer
    reason = answer.text[:300].replace("\n", " ")
    if status >= _SERVER_ERROR:
        msg = f"{method} {url}: GitHub failed with {status}: {reason} (run the job again)"
        raise _PassingError(msg)
    if status < _ERROR:
        msg = (
            f"{method} {url}: moved to {answer.headers.get('Location')} "
            "(the repository has a new name: start the workflow there)"
        )
        raise GitHubError(msg)
    msg = f"{method} {url}: refused with {status}: {reason} (see docs/github.md, permissions)"
    raise GitHubError(msg)


def _document(answer: requests.Response) -> Json:
    try:
        document: Json = answer.json()
    except requests.JSONDecodeError as error:
        msg = f"{answer.url}: expected JSON, got {answer.text[:80]!r} (is GITHUB_API_URL right?)"
        raise GitHubError(msg) from error
    return document


def _at(document: Json, *keys: str) -> Json:
    """Return the value at a path of keys; None where there is none."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _text(document: Json, *keys: str) -> str:
    value = _at(document, *keys)
    return value if isinstance(value, str) else ""


def _required(document: Json, *keys: str) -> str:
    value = _text(document, *keys)
    if not value:
        msg = f"GitHub's answer has no text {'.'.join(keys)} (is GITHUB_API_URL right?)"
        raise GitHubError(msg)
    return value


def _number(document: Json, *keys: str) -> int:
    value = _at(document, *keys)
    if not isinstance(value, int):
        msg = f"GitHub's answer has no number {'.'.join(keys)} (is GITHUB_API_URL right?)"
        raise GitHubError(msg)
    return value
