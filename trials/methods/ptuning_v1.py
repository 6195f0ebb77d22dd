"""P-Tuning v1 in AoT P-Tuning's sense (appendix A.2): trained rows before the text, and a head.

The name is that of Liu et al. 2021, but their prompt encoder is left out: AoT's authors compare
with plain rows, H_0 <- [P; H_0]. With the encoder it is `p_tuning_mlp` or `p_tuning_lstm`. What it
computes is `prompt_tuning`; the papers' protocols differ.
"""

from dataclasses import dataclass
from typing import ClassVar

from trials.methods.prompt_tuning import PromptTuning


@dataclass(frozen=True, kw_only=True)
class PTuningV1(PromptTuning):
    """P x D parameters; AoT leaves open how the rows start and where in the embeddings they go.

    Here they go before the word embeddings, the backbone adds positions to rows and text, and the
    head reads the first token of the text.
    """

    summary: ClassVar[str] = "rows before the text, as AoT P-Tuning compares with them"
    paper: ClassVar[str] = "aot"
