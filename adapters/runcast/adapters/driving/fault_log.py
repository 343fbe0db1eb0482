"""Log lines for faults of which a stream carries only one redacted sentence: here with the traceback."""

from __future__ import annotations

import logging

from runcast.adapters.errors import AdapterError
from runcast.adapters.untranslated import kind_of

logger = logging.getLogger(__name__)


def log_failure(error: BaseException) -> None:
    """Log the exception that ended a run. A refused input is no fault and is not logged."""
    if isinstance(error, Exception) and not isinstance(error, AdapterError):
        logger.error("a run failed with %s", type(error).__name__, exc_info=error)


def log_untranslated(part: object, error: Exception) -> None:
    """Log a part of a run that could not be translated."""
    logger.error("could not translate a %s; the run continues without it", kind_of(part), exc_info=error)
