"""Expected Validation Performance: records in, a labelled curve or a refusal out."""

from orchestrator.evp.dispatch import evp
from orchestrator.evp.records import Curve, Refusal, StudyRecord, TrialRecord

__all__ = ["Curve", "Refusal", "StudyRecord", "TrialRecord", "evp"]
