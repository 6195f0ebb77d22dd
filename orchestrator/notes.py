"""What every number of a study must be read with, in words."""

from orchestrator.store.rows import StudyRow


def note_of(study: StudyRow) -> str:
    """What every number of a study must be read with: backbone, data, limits."""
    if study.data.get("source") == "demo":
        data = "demo data: generated tasks, scores say nothing about GLUE"
    else:
        words = study.data.get("words") or study.data.get("data_dir")
        data = f"data: {words}" if words else ""
    limits = ", ".join(
        f"{option} {study.data[key]}"
        for option, key in (("limit-train", "limit_train"), ("limit-eval", "limit_eval"))
        if study.data.get(key) is not None
    )
    return "; ".join(part for part in (f"backbone {study.backbone}", data, limits) if part)
