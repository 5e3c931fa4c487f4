"""What can go wrong between a verdict and GitHub. Every message says what to do next."""


class ReportError(Exception):
    """Base of everything this room raises on purpose."""


class EventError(ReportError):
    """The event that started the workflow does not say what to report on, or says nonsense."""


class GitHubError(ReportError):
    """GitHub refused a request, or could not be reached."""
