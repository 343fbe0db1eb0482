"""The promises of every store, as checks to run against a store of your own."""

from runcast.slim.stores.contract.cases import CONTRACT, Check
from runcast.slim.stores.contract.tools import Broken

__all__ = ["CONTRACT", "Broken", "Check"]
