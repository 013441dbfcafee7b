"""Speech and sound."""

from published.facts import Published


def lstm(inputs: int, hidden: int) -> int:
    """Parameters of one direction: four gates, each with weights for the input and the state, and two biases."""
    return 4 * hidden * (inputs + hidden + 2)


def speaker_encoder(mels: int = 40, hidden: int = 768, width: int = 256) -> int:
    return sum(lstm(inputs, hidden) + hidden * width for inputs in (mels, width, width))


SPEAKER_BIASES = 3 * 8 * 768

PUBLISHED = {
    "tts_angular": Published(
        speaker_encoder(),
        (32, 2, 50, 40),
        (64, 50, 40),
        {"lr": 1e-4, "betas": (0.9, 0.999), "weight_decay": 0},
        64 * 50 * (speaker_encoder() - SPEAKER_BIASES),
    ),
}
