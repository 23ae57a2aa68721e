"""That a framework is there, in a version that its integration supports."""

from importlib.metadata import PackageNotFoundError, version


def require(framework: str, supported: str) -> None:
    """Refuse to go on without the framework, or with a version outside the range.

    Args:
        framework: the package's name, also in the command that installs it.
        supported: a version specifier, such as ">=2.5,<3".

    Raises:
        ImportError: the message says what is installed, what is supported, and the command that installs it.
    """
    remedy = f"pip install '{framework}{supported}'"
    try:
        installed = version(framework)
    except PackageNotFoundError:
        raise ImportError(f"this needs {framework} {supported}, which is not installed: {remedy}") from None
    from packaging.specifiers import SpecifierSet  # every supported framework depends on it

    if not SpecifierSet(supported).contains(installed, prereleases=True):
        raise ImportError(f"this needs {framework} {supported}, installed is {installed}: {remedy}")
