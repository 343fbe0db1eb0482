"""What happened, kept small: AG-UI events as bytes, checked, folded, compacted, stored and restored.

Everything promised by this house is named here; what is not named here is private.
"""

from typing import TYPE_CHECKING

from runcast.slim.on_demand import on_demand

if TYPE_CHECKING:
    from runcast.slim.archive.info import (
        Compacted,
        LogStats,
        Portion,
        Pruned,
        RunInfo,
        Snapshot,
        ThreadInfo,
        ThreadSize,
    )
    from runcast.slim.archive.lineage import (
        EdgeKind,
        NormalizedInput,
        RunNode,
        ancestors,
        denormalize_input,
        normalize_input,
    )
    from runcast.slim.compaction.compactor import Compactor, compact
    from runcast.slim.compaction.late_join import Join
    from runcast.slim.entry import Entry
    from runcast.slim.errors import (
        CheckpointRefused,
        Conflict,
        EvidenceRefused,
        Forgotten,
        InvalidStream,
        LineageError,
        PatchRefused,
        PatchTooLarge,
        ReaderTooSlow,
        SlimError,
        SnapshotError,
        StoreError,
        UnknownThread,
        WireError,
    )
    from runcast.slim.evidence import Evidence, Omission, canonical, collect_evidence, export_evidence
    from runcast.slim.folding.checkpoint import Checkpoint, checkpoint
    from runcast.slim.folding.conversation import Conversation, fold
    from runcast.slim.folding.run_records import RunRecord
    from runcast.slim.folding.step_records import StepRecord, Usage
    from runcast.slim.log.keeping import Archive
    from runcast.slim.log.log_options import LogOptions
    from runcast.slim.log.notes import Notes
    from runcast.slim.log.recovery import Recovery
    from runcast.slim.log.run_log import RunLog
    from runcast.slim.protocol.chunk_expander import ChunkExpander
    from runcast.slim.protocol.rules import Violation
    from runcast.slim.protocol.verifier import Verifier, verify
    from runcast.slim.redaction.patterns import (
        CARD_NUMBER,
        DEFAULT_KEYS,
        DEFAULT_PATTERNS,
        EMAIL,
        SecretPattern,
    )
    from runcast.slim.redaction.redactor import Redactor
    from runcast.slim.redaction.stream_redactor import StreamRedactor
    from runcast.slim.snapshots.agent_state import AgentState, StateBuilder
    from runcast.slim.snapshots.schedule import SnapshotTaker
    from runcast.slim.snapshots.serializer import AgentSerializer, SlimSerializer
    from runcast.slim.snapshots.slim_config import SlimConfig
    from runcast.slim.stores import MemoryStore, Note, Store, Watch, open_store
    from runcast.slim.wire.codec import (
        AnyEvent,
        UnknownEvent,
        decode,
        decode_input,
        encode,
        encode_input,
        encode_sse,
        is_known,
    )
    from runcast.slim.wire.streams import EventReader, decode_array, decode_lines, encode_array, encode_lines
    from runcast.slim.wire.strict import decode_strict
else:
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "archive.info": "Compacted LogStats Portion Pruned RunInfo Snapshot ThreadInfo ThreadSize",
            "archive.lineage": "EdgeKind NormalizedInput RunNode ancestors denormalize_input normalize_input",
            "compaction.compactor": "Compactor compact",
            "compaction.late_join": "Join",
            "entry": "Entry",
            "errors": "CheckpointRefused Conflict EvidenceRefused Forgotten InvalidStream LineageError PatchRefused PatchTooLarge ReaderTooSlow SlimError SnapshotError StoreError UnknownThread WireError",
            "evidence": "Evidence Omission canonical collect_evidence export_evidence",
            "folding.checkpoint": "Checkpoint checkpoint",
            "folding.conversation": "Conversation fold",
            "folding.run_records": "RunRecord",
            "folding.step_records": "StepRecord Usage",
            "log.keeping": "Archive",
            "log.log_options": "LogOptions",
            "log.notes": "Notes",
            "log.recovery": "Recovery",
            "log.run_log": "RunLog",
            "protocol.chunk_expander": "ChunkExpander",
            "protocol.rules": "Violation",
            "protocol.verifier": "Verifier verify",
            "redaction.patterns": "CARD_NUMBER DEFAULT_KEYS DEFAULT_PATTERNS EMAIL SecretPattern",
            "redaction.redactor": "Redactor",
            "redaction.stream_redactor": "StreamRedactor",
            "snapshots.agent_state": "AgentState StateBuilder",
            "snapshots.schedule": "SnapshotTaker",
            "snapshots.serializer": "AgentSerializer SlimSerializer",
            "snapshots.slim_config": "SlimConfig",
            "stores": "MemoryStore Note Store Watch open_store",
            "wire.codec": "AnyEvent UnknownEvent decode decode_input encode encode_input encode_sse is_known",
            "wire.streams": "EventReader decode_array decode_lines encode_array encode_lines",
            "wire.strict": "decode_strict",
        },
    )

__all__ = [
    "CARD_NUMBER",
    "DEFAULT_KEYS",
    "DEFAULT_PATTERNS",
    "EMAIL",
    "AgentSerializer",
    "AgentState",
    "AnyEvent",
    "Archive",
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
    "Forgotten",
    "InvalidStream",
    "Join",
    "LineageError",
    "LogOptions",
    "LogStats",
    "MemoryStore",
    "NormalizedInput",
    "Note",
    "Notes",
    "Omission",
    "PatchRefused",
    "PatchTooLarge",
    "Portion",
    "Pruned",
    "ReaderTooSlow",
    "Recovery",
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
