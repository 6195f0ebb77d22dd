"""Tokenised splits on disk: one file of plain arrays per rows, tokenizer and length."""

import hashlib
import json
import logging
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

FORMAT = 1
"""Raised when the same rows and tokenizer would give other arrays."""

Arrays = dict[str, NDArray[Any]]

_log = logging.getLogger(__name__)


def feature_key(rows: str, tokenizer: PreTrainedTokenizerBase, max_length: int) -> str:
    """The name under which the features of these rows are kept, `rows` being a fingerprint."""
    parts = [FORMAT, rows, tokenizer_fingerprint(tokenizer), max_length]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def tokenizer_fingerprint(tokenizer: PreTrainedTokenizerBase) -> str:
    """SHA-256 of what decides a text's token numbers, the same in every process."""
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    # a tokenizer keeps the cutting and padding of its last call; neither is its own
    backend.pop("truncation", None)
    backend.pop("padding", None)
    parts = [backend, list(tokenizer.model_input_names)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def read_arrays(path: Path, required: Iterable[str]) -> Arrays | None:
    """The arrays of a file; None if it is missing, damaged or lacks a required name."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in {*arrays.files, *required}}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        _log.warning("rebuilding the damaged feature file %s: %s", path, error)
        return None


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the file whole or not at all; a disk that refuses costs only the cache."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
            temporary = Path(file.name)
            np.savez(file, allow_pickle=False, **arrays)
        os.replace(temporary, path)
    except OSError as error:
        _log.warning("cannot keep features in %s: %s", path, error)
        if temporary is not None:
            temporary.unlink(missing_ok=True)
