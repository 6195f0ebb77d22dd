"""Tiny random backbones in folders, each with a tokenizer trained on the demo's sentences."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

from trials.backbones.backbone import Backbone
from trials.backbones.edits import Text
from trials.tasks.demo import demo_rows
from trials.tasks.table import TASKS

SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 80,
}
FAMILY_OPTIONS: dict[str, dict[str, Any]] = {
    "bert": {"type_vocab_size": 2},
    "roberta": {"type_vocab_size": 1},
    "deberta": {
        "type_vocab_size": 0,
        "pad_token_id": 1,
        "relative_attention": True,
        "position_biased_input": False,
        "pos_att_type": ["c2p", "p2c"],
    },
}
NOISE = 0.2
"""Deviation of every weight around its mean: no bias and no token is silently zero."""
VOCABULARY = 400


def sentences() -> Iterator[str]:
    for task in TASKS.values():
        for row in demo_rows(task.name, task.train):
            yield from (str(row[field]) for field in task.fields)


def wordpiece() -> PreTrainedTokenizerFast:
    """Letters and the commonest words; the trainer for it breaks ties anew in every process."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = Counter(re.findall(r"\w+|[^\w\s]", " ".join(sentences()).lower()))
    letters = sorted(set("".join(words)))
    pieces = [*special, *letters, *(f"##{letter}" for letter in letters)]
    common = sorted(words, key=lambda word: (-words[word], word))
    pieces = list(dict.fromkeys([*pieces, *common]))[:VOCABULARY]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def byte_pairs() -> PreTrainedTokenizerFast:
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.train_from_iterator(
        sentences(),
        trainers.BpeTrainer(
            vocab_size=VOCABULARY,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        cls_token="<s>",
        sep_token="</s>",
        mask_token="<mask>",
        model_input_names=["input_ids", "attention_mask"],
    )


TOKENIZERS = {"bert": wordpiece, "roberta": byte_pairs, "deberta": byte_pairs}


def noisy_model(family: str, **changes: Any) -> Any:
    """Hugging Face's own model of the family, every weight of it noisy, with its pooler."""
    options = {"vocab_size": VOCABULARY, **SIZES, **FAMILY_OPTIONS[family], **changes}
    config = AutoConfig.for_model(family, **options)
    model = AutoModel.from_config(config)
    source = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            center = float(name.endswith("LayerNorm.weight"))
            weight.copy_(center + NOISE * torch.randn(weight.shape, generator=source))
    return model.eval()


def write_tiny(family: str, folder: Path) -> Path:
    """A backbone as `--backbone DIR` takes it."""
    noisy_model(family).save_pretrained(folder)
    TOKENIZERS[family]().save_pretrained(folder)
    return folder


def some_text(backbone: Backbone, *, lengths: tuple[int, ...], columns: int | None = None) -> Text:
    """Random tokens, with padding on the right up to `columns`."""
    shape, config = backbone.shape, backbone.model.config
    columns = columns or max(lengths)
    source = torch.Generator().manual_seed(sum(lengths))
    ids_NT = torch.randint(5, shape.vocabulary, (len(lengths), 80), generator=source)[:, :columns]
    mask_NT = (torch.arange(columns) < torch.tensor(lengths)[:, None]).long()
    ids_NT = torch.where(mask_NT.bool(), ids_NT, config.pad_token_id)
    types_NT = None
    if config.type_vocab_size > 1:
        second = torch.arange(columns) >= torch.tensor(lengths)[:, None] // 2
        types_NT = second.long() * mask_NT
    return Text(ids_NT, mask_NT, types_NT, torch.tensor(lengths))


def own_forward(backbone: Backbone, text: Text) -> torch.Tensor:
    """Hugging Face's forward of the same model [N, T, D]."""
    types = {} if text.types_NT is None else {"token_type_ids": text.types_NT}
    output = backbone.model(input_ids=text.ids_NT, attention_mask=text.mask_NT, **types)
    return output.last_hidden_state
