from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import datasets
import pytest
import yaml
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from trials.tasks.demo import demo_rows
from trials.tasks.table import TASKS, Task

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]

WriteHub = Callable[..., Path]


@pytest.fixture(autouse=True)
def datasets_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets_cache")
    return tmp_path / "datasets_cache"


@pytest.fixture
def write_hub(tmp_path: Path) -> WriteHub:
    """Writes one config of a dataset as the Hub lays it out; gives the data folder."""

    def write(
        task: Task,
        splits: dict[str, list[dict[str, Any]]],
        *,
        place: str = "nyu-mll/glue",
        config: str | None = None,
        label_names: Iterable[str] | None = None,
    ) -> Path:
        config = config or task.config
        folder = tmp_path / "data" / place
        (folder / config).mkdir(parents=True)
        for split, rows in splits.items():
            table = datasets.Dataset.from_list(rows)
            if label_names is not None:
                names = datasets.ClassLabel(names=list(label_names))
                table = table.cast_column("label", names)
            table.to_parquet(folder / config / f"{split}-00000-of-00001.parquet")
        files = [{"split": split, "path": f"{config}/{split}-*"} for split in splits]
        card = yaml.safe_dump({"configs": [{"config_name": config, "data_files": files}]})
        (folder / "README.md").write_text(f"---\n{card}---\n")
        return tmp_path / "data"

    return write


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    return make_tokenizer(type_ids=True)


@pytest.fixture(scope="session")
def tokenizer_without_types() -> PreTrainedTokenizerFast:
    return make_tokenizer(type_ids=False)


def make_tokenizer(*, type_ids: bool) -> PreTrainedTokenizerFast:
    words = {
        word
        for task in TASKS.values()
        for row in demo_rows(task.name, task.train)
        for field in task.fields
        for word in str(row[field]).lower().rstrip("?").split()
    }
    vocabulary = {word: i for i, word in enumerate([*SPECIAL, "?", *sorted(words)])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    inputs = ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        model_input_names=[*inputs, "token_type_ids"] if type_ids else inputs,
    )
