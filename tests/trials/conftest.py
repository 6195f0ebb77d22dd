from collections.abc import Iterator
from pathlib import Path

import datasets
import huggingface_hub.constants
import pytest
import torch
import yaml
from tiny_backbones import write_tiny
from trial_specs import assert_pristine

from trials.backbones.backbone import Backbone
from trials.backbones.load import FAMILIES, load
from trials.run import Bench
from trials.tasks.demo import demo_rows

CPU = torch.device("cpu")


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """What HF_HUB_OFFLINE=1 does, which is read once, at import."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)


@pytest.fixture(scope="session")
def tiny_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A tiny backbone of every family."""
    return {family: write_tiny(family, tmp_path_factory.mktemp(family)) for family in FAMILIES}


@pytest.fixture(params=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(family: str, tiny_folders: dict[str, Path]) -> Path:
    return tiny_folders[family]


@pytest.fixture
def tiny_bert(tiny_folders: dict[str, Path]) -> Path:
    return tiny_folders["bert"]


@pytest.fixture
def backbone(folder: Path) -> Backbone:
    return load(str(folder), CPU)


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Whatever a test does on it, its backbone must be the pretrained one in the end."""
    bench = Bench(CPU)
    yield bench
    if bench.num_loads:
        assert_pristine(bench)


@pytest.fixture(scope="session")
def ragged_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder whose `sst2` has texts of 6 to 40 words, as real ones do."""
    root = tmp_path_factory.mktemp("ragged")
    folder = root / "nyu-mll" / "glue"
    (folder / "sst2").mkdir(parents=True)
    files = []
    for split in ("train", "validation"):
        rows = demo_rows("sst2", split)
        texts = [str(row["sentence"]) for row in rows]
        for i, row in enumerate(rows):
            row["sentence"] = " ".join(texts[i : i + 1 + i * 7 % 5])
        table = datasets.Dataset.from_list(rows)
        table.to_parquet(folder / "sst2" / f"{split}-00000-of-00001.parquet")
        files.append({"split": split, "path": f"sst2/{split}-*"})
    card = yaml.safe_dump({"configs": [{"config_name": "sst2", "data_files": files}]})
    (folder / "README.md").write_text(f"---\n{card}---\n")
    before = datasets.config.HF_DATASETS_CACHE
    datasets.config.HF_DATASETS_CACHE = root / "cache"
    yield root
    datasets.config.HF_DATASETS_CACHE = before
