"""Whether the Hub can be reached: asked once, briefly, since its clients retry for minutes."""

from collections.abc import Callable

from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
from huggingface_hub.utils import httpx  # type: ignore[attr-defined]  # a lazy export

PROBE_SECONDS = 5.0
"""How long the Hub may take to answer before its cache is used alone."""


def answers_for_dataset(hub_id: str) -> bool:
    """Whether the Hub answers when asked for a dataset, be it with a refusal."""
    return _answers(lambda hub: hub.dataset_info(hub_id, timeout=PROBE_SECONDS))


def answers_for_model(hub_id: str) -> bool:
    """Whether the Hub answers when asked for a model, be it with a refusal."""
    return _answers(lambda hub: hub.model_info(hub_id, timeout=PROBE_SECONDS))


def _answers(ask: Callable[[HfApi], object]) -> bool:
    try:
        ask(HfApi())
    except (httpx.TransportError, OfflineModeIsEnabled):
        return False
    except HfHubHTTPError:
        return True  # an answer all the same: who loads says it better
    return True
