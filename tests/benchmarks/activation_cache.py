"""Step time with kept activations over step time without, for LPT on MiniLM.

    python tests/benchmarks/activation_cache.py [--steps 60] [--threads 1]

Trains on batches of 16 texts of 32 tokens both ways, step by step in turn, at the middle and the
last block, and prints the medians, of the wall clock and of the processor's time, which other
work on the machine disturbs less. To reach: 0.75 and 0.45 (design, section 9).
"""

import argparse
import time
from statistics import median

import numpy as np
import torch

from trials.activations import Activations
from trials.backbones.backbone import Backbone
from trials.backbones.load import load
from trials.methods.lpt import LPT
from trials.spec import Training
from trials.stack import Stack
from trials.tasks.features import Features

BATCH_SIZE, LENGTH = 16, 32
LAYERS = {"middle": 3, "last": 5}


def some_features(num_steps: int, vocabulary: int) -> Features:
    """Random texts for so many steps."""
    num_rows = num_steps * BATCH_SIZE
    source = np.random.default_rng(0)
    return Features(
        token_ids=source.integers(1000, vocabulary, num_rows * LENGTH, dtype=np.int32),
        type_ids=None,
        offsets=np.arange(num_rows + 1) * LENGTH,
        labels=source.integers(0, 2, num_rows),
        pad_id=0,
    )


def make_stack(backbone: Backbone, layer: int, max_bytes: int) -> Stack:
    """A stack of one lane whose epochs are single steps; with a cap of no bytes nothing is kept."""
    method = LPT(learning_rate=1e-3, insertion_layer=layer, bottleneck=256)
    training = Training(batch_size=BATCH_SIZE, eval_every=1)
    return Stack(backbone, Activations(backbone, max_bytes), method, training, [0], 2, 1)


def step_ms(stack: Stack, features: Features) -> tuple[float, float]:
    """Wall clock and processor time of one training step."""
    wall, processor = time.perf_counter(), time.process_time()
    stack.train_epoch(features, 1, lambda: False)
    return 1000 * (time.perf_counter() - wall), 1000 * (time.process_time() - processor)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60, help="of each kind, at each block")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    backbone = load("minilm", torch.device("cpu"))
    features = some_features(8, backbone.shape.vocabulary)
    for name, layer in LAYERS.items():
        stacks = [make_stack(backbone, layer, max_bytes) for max_bytes in (2 << 30, 0)]
        for stack in stacks:
            for _ in range(3):  # the first step fills what is kept
                step_ms(stack, features)
        steps = [[step_ms(stack, features) for stack in stacks] for _ in range(options.steps)]
        print(f"lpt at the {name} block, {layer} of {backbone.shape.num_blocks}:")
        for clock, words in enumerate(("wall clock", "processor")):
            kept, plain = (median(pair[way][clock] for pair in steps) for way in (0, 1))
            print(f"  {words}: {kept:.1f} ms kept, {plain:.1f} ms not, ratio {kept / plain:.2f}")


if __name__ == "__main__":
    main()
