"""What happened, kept small: AG-UI events as bytes, checked, folded, compacted, stored and restored.

Everything promised by this house is named here; what is not named here is private.
"""

from runcast.slim.checkpoint import Checkpoint, checkpoint
from runcast.slim.chunks import ChunkExpander
from runcast.slim.compact import Compactor, compact
from runcast.slim.config import SlimConfig
from runcast.slim.entry import Entry
from runcast.slim.errors import (
    CheckpointRefused,
    Conflict,
    EvidenceRefused,
    InvalidStream,
    LineageError,
    ReaderTooSlow,
    SlimError,
    SnapshotError,
    StoreError,
    UnknownThread,
    WireError,
)
from runcast.slim.evidence import Evidence, Omission, canonical, collect_evidence, export_evidence
from runcast.slim.fold import Conversation, fold
from runcast.slim.join import Join
from runcast.slim.lineage import (
    EdgeKind,
    NormalizedInput,
    RunNode,
    ancestors,
    denormalize_input,
    normalize_input,
)
from runcast.slim.log import RunLog
from runcast.slim.log_info import (
    Compacted,
    LogStats,
    Portion,
    Pruned,
    RunInfo,
    Snapshot,
    ThreadInfo,
    ThreadSize,
)
from runcast.slim.log_notes import Notes
from runcast.slim.patterns import CARD_NUMBER, DEFAULT_KEYS, DEFAULT_PATTERNS, EMAIL, SecretPattern
from runcast.slim.records import RunRecord
from runcast.slim.redact import Redactor
from runcast.slim.redact_stream import StreamRedactor
from runcast.slim.rules import Violation
from runcast.slim.snapshot import AgentSerializer, SlimSerializer
from runcast.slim.state import AgentState, StateBuilder
from runcast.slim.steps import StepRecord, Usage
from runcast.slim.stores import MemoryStore, Note, Store, Watch, open_store
from runcast.slim.streams import EventReader, decode_array, decode_lines, encode_array, encode_lines
from runcast.slim.strict import decode_strict
from runcast.slim.taker import SnapshotTaker
from runcast.slim.verify import Verifier, verify
from runcast.slim.wire import (
    AnyEvent,
    UnknownEvent,
    decode,
    decode_input,
    encode,
    encode_input,
    encode_sse,
    is_known,
)

__all__ = [
    "CARD_NUMBER",
    "DEFAULT_KEYS",
    "DEFAULT_PATTERNS",
    "EMAIL",
    "AgentSerializer",
    "AgentState",
    "AnyEvent",
    "Checkpoint",
    "CheckpointRefused",
    "ChunkExpander",
    "Compacted",
    "Compactor",
    "Conflict",
    "Conversation",
    "EdgeKind",
    "Entry",
    "EventReader",
    "Evidence",
    "EvidenceRefused",
    "InvalidStream",
    "Join",
    "LineageError",
    "LogStats",
    "MemoryStore",
    "NormalizedInput",
    "Note",
    "Notes",
    "Omission",
    "Portion",
    "Pruned",
    "ReaderTooSlow",
    "Redactor",
    "RunInfo",
    "RunLog",
    "RunNode",
    "RunRecord",
    "SecretPattern",
    "SlimConfig",
    "SlimError",
    "SlimSerializer",
    "Snapshot",
    "SnapshotError",
    "SnapshotTaker",
    "StateBuilder",
    "StepRecord",
    "Store",
    "StoreError",
    "StreamRedactor",
    "ThreadInfo",
    "ThreadSize",
    "UnknownEvent",
    "UnknownThread",
    "Usage",
    "Verifier",
    "Violation",
    "Watch",
    "WireError",
    "ancestors",
    "canonical",
    "checkpoint",
    "collect_evidence",
    "compact",
    "decode",
    "decode_array",
    "decode_input",
    "decode_lines",
    "decode_strict",
    "denormalize_input",
    "encode",
    "encode_array",
    "encode_input",
    "encode_lines",
    "encode_sse",
    "export_evidence",
    "fold",
    "is_known",
    "normalize_input",
    "open_store",
    "verify",
]
