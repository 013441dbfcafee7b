"""Speech and sound, and the frames of a film."""

from published.facts import ADAM, Published


def lstm(inputs: int, hidden: int) -> int:
    """Parameters of one direction: four gates, each with weights for the input and the state, and two biases."""
    return 4 * hidden * (inputs + hidden + 2)


def speaker_encoder(mels: int = 40, hidden: int = 768, width: int = 256) -> int:
    return sum(lstm(inputs, hidden) + hidden * width for inputs in (mels, width, width))


SPEAKER_BIASES = 3 * 8 * 768


def demucs(channels: int, levels: int = 6, sources: int = 4, ears: int = 2) -> int:
    """Parameters: in each level a convolution of 8 and one of 1 that doubles the channels, and on the way up one of 3
    that doubles them and one of 8; at the bottom two LSTM layers of two directions."""
    widths = [channels * 2**level for level in range(levels)]
    below = [ears, *widths[:-1]]
    above = [sources * ears, *widths[:-1]]
    encoder = sum((8 * narrow + 1) * wide + (wide + 1) * 2 * wide for narrow, wide in zip(below, widths, strict=True))
    decoder = sum((3 * wide + 1) * 2 * wide + (8 * wide + 1) * out for out, wide in zip(above, widths, strict=True))
    deepest = widths[-1]
    recurrence = 2 * lstm(deepest, deepest) + 2 * lstm(2 * deepest, deepest)
    return encoder + decoder + recurrence + (2 * deepest + 1) * deepest


def demucs_multiplications(channels: int, songs: int, lengths: tuple[int, ...], ears: int = 2, sources: int = 4) -> int:
    """`lengths` are those behind the levels of the encoder, of one song."""
    widths = [channels * 2**level for level in range(len(lengths))]
    total, narrow = 0, ears
    for wide, length in zip(widths, lengths, strict=True):
        total += length * wide * (8 * narrow + 2 * wide)
        narrow = wide
    deepest, length = widths[-1], lengths[-1]
    total += length * (2 * 4 * deepest * (deepest + deepest + 2 * deepest + deepest) + 2 * deepest**2)
    for wide, out in zip(reversed(widths), [*reversed(widths[:-1]), sources * ears], strict=True):
        length -= 2
        total += length * wide * (3 * 2 * wide + 8 * out)
        length = 4 * length + 4
    return songs * total


def unet(inputs: int, outputs: int, image: int) -> tuple[int, int]:
    """Parameters and multiplications for one image: (kernel, channels in and out, and by what the resolution is
    divided) of each convolution of the published network."""
    widths, kernels = (32, 64, 128, 256, 512, 512), (7, 5, 3, 3, 3, 3)
    convolutions = [(7, inputs, 32, 1), (7, 32, 32, 1), (3, 32, outputs, 1)]
    for level in range(1, 6):
        narrow, wide, kernel, divisor = widths[level - 1], widths[level], kernels[level], 2**level
        convolutions += [(kernel, narrow, wide, divisor), (kernel, wide, wide, divisor)]
        convolutions += [(3, wide, narrow, divisor // 2), (3, 2 * narrow, narrow, divisor // 2)]
    parameters = sum(kernel**2 * inner * outer + outer for kernel, inner, outer, _ in convolutions)
    work = sum(kernel**2 * inner * outer * (image // part) ** 2 for kernel, inner, outer, part in convolutions)
    return parameters, work


MOTION, CORRECTION = unet(6, 4, image=352), unet(20, 5, image=352)

WIDTH, INNER, CHARACTERS = 512, 2048, 1014
ATTENTION = 4 * (WIDTH + 1) * WIDTH
FEED_FORWARD = (WIDTH + 1) * INNER + (INNER + 1) * WIDTH
SPEECH_TRANSFORMER = (
    (4 * 80 + 1) * WIDTH
    + 2 * WIDTH
    + 6 * (ATTENTION + FEED_FORWARD + 2 * 2 * WIDTH)
    + 6 * (2 * ATTENTION + FEED_FORWARD + 3 * 2 * WIDTH)
    + CHARACTERS * WIDTH
)


PUBLISHED = {
    "Super_SloMo": Published(
        MOTION[0] + CORRECTION[0],
        (6, 3, 352, 352),
        (6, 3, 352, 352),
        ADAM | {"lr": 1e-4},
        6 * (MOTION[1] + CORRECTION[1]),
    ),
    "demucs": Published(
        demucs(channels=32),
        (4, 5, 2, 135576),
        (4, 5, 2, 135576),
        ADAM | {"lr": 3e-4},
        demucs_multiplications(32, songs=4, lengths=(22868, 5716, 1428, 356, 88, 21)),
    ),
    "speech_transformer": Published(
        SPEECH_TRANSFORMER,
        (16, 240, 320),
        (1, 97, 320),
        {"betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": 0},
    ),
    "tts_angular": Published(
        speaker_encoder(),
        (32, 2, 50, 40),
        (64, 50, 40),
        {"lr": 1e-4, "betas": (0.9, 0.999), "weight_decay": 0},
        64 * 50 * (speaker_encoder() - SPEAKER_BIASES),
    ),
}
